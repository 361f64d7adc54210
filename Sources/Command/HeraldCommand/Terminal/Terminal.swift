import Foundation
import HeraldJSON
import HeraldService

/// Writes to standard output and standard error.
///
/// Every line for people may have texts of others in it, such as the name of a device, and is escaped (``LogText/line(_:)``).
enum Terminal {
    /// One line on standard output, at once: who reads it through a pipe does not wait for a buffer to fill.
    static func say(_ line: String) {
        sayExactly(LogText.line(line))
    }

    /// Text for a program on standard output, such as JSON or a file, as it is.
    static func sayExactly(_ text: String) {
        write(text + "\n", to: STDOUT_FILENO)
    }

    /// One line of a service on standard output; lost if its reader has stalled.
    static func announce(_ line: String) {
        write(LogText.line(line) + "\n", to: STDOUT_FILENO, patience: patience)
    }

    /// One line on standard error; lost if its reader has stalled, so that a service ends that has failed.
    static func complain(_ line: String) {
        write(LogText.line(line) + "\n", to: STDERR_FILENO, patience: patience)
    }

    /// How long a reader may stall, in milliseconds.
    private static let patience: CInt = 1000
    /// The bytes that a pipe takes at once when it is ready (POSIX, `PIPE_BUF`).
    private static let pieceBytes = 512

    /// A value as one line of JSON on standard output, its members in snake_case.
    static func sayJSON(_ value: some Encodable) throws {
        sayExactly(try json(value))
    }

    /// A long list on standard output, part by part: as lines of a table, or, without a heading, as one JSON array.
    ///
    /// `page` reads the part after a key, and returns the key of the next one, nil at the end.
    /// - Throws: The errors of `page`.
    static func sayList<Item: Encodable>(
        heading: [String]?,
        _ page: (_ after: String?) async throws -> (items: [Item], next: String?),
        row: (Item) -> [String]
    ) async throws {
        var after: String?
        var isFirst = true
        repeat {
            let (items, next) = try await page(after)
            if let heading {
                var table = TextTable(heading)
                for item in items { table.add(row(item)) }
                table.lines.dropFirst(isFirst ? 0 : 1).forEach(say)
                isFirst = false
            } else {
                for item in items {
                    write((isFirst ? "[" : ",") + (try json(item)), to: STDOUT_FILENO)
                    isFirst = false
                }
            }
            after = next
        } while after != nil
        if heading == nil { say(isFirst ? "[]" : "]") }
    }

    /// Prints JSON with its numbers as they were written.
    static func sayJSON(_ json: JSON) {
        say(json.description)
    }

    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// Writes all of the text, unless the reader stalls for `patience` milliseconds; -1 waits for ever.
    private static func write(_ text: String, to descriptor: CInt, patience: CInt = -1) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if patience >= 0, poll(&wanted, 1, patience) == 0 { return }
            let piece = patience >= 0 ? rest.prefix(pieceBytes) : rest
            let count = piece.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
