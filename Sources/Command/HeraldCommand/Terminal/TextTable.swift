import HeraldService

/// Rows under a heading, in columns as wide as their widest text.
struct TextTable {
    private var rows: [[String]]

    init(_ heading: [String]) {
        rows = [heading]
    }

    /// Adds a row, whose texts may be those of others: they are escaped here, so that the columns have their width.
    mutating func add(_ row: [String]) {
        rows.append(row.map(LogText.line))
    }

    /// The lines; nothing is after the last text of a line.
    var lines: [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, text) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], TerminalWidth.of(text))
            }
        }
        return rows.map { row in
            let cells = row.enumerated().map { column, text in
                text + String(repeating: " ", count: widths[column] - TerminalWidth.of(text))
            }
            var line = cells.joined(separator: "  ")[...]
            while line.last == " " { line = line.dropLast() }
            return String(line)
        }
    }
}
