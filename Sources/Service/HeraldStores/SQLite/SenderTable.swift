import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `journal_sender`: the names of ``SenderNames`` that the journal's events use, without gaps from 1.
struct SenderTable {
    private let names: SenderNames
    /// The number of durable names.
    private var count: Int

    static func load(_ database: Database, into names: SenderNames, damage: DamagedRows) throws {
        var found: [String] = []
        try CheckedRow.forEach(database, sql: "SELECT number, name FROM journal_sender ORDER BY number", []) { row in
            let name = try damage.leaveOut("journal_sender") { try row.text(1) }
            let number = try CheckedRow.valid(Int(exactly: try row.integer(0)))
            guard (1...SenderNames.capacity).contains(number) else { return }
            // A damaged name leaves its number without one.
            while found.count < number - 1 { found.append("") }
            found.append(name ?? "")
        }
        names.load(found)
    }

    init(_ names: SenderNames, _ database: Database) throws {
        self.names = names
        count = Int(try Int64.fetchOne(database, sql: "SELECT max(number) FROM journal_sender") ?? 0)
    }

    /// Writes the names up to that of a number.
    /// - Returns: Their number, for ``wrote(_:)`` once they are durable.
    /// - Throws: `DatabaseError`.
    func append(upTo newest: SenderNumber, _ database: Database) throws -> Int {
        var number = count
        guard Int(newest.value) > number else { return number }
        for name in names.names(after: count, upTo: newest) {
            number += 1
            try database.execute(sql: "INSERT INTO journal_sender VALUES (?, ?)", arguments: [number, name])
        }
        return number
    }

    mutating func wrote(_ count: Int) {
        self.count = count
    }
}
