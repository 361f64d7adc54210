import Foundation

/// Writes to standard output and standard error.
enum Terminal {
    /// One line on standard output, at once: who reads it through a pipe does not wait for a buffer to fill.
    static func say(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// One line on standard error.
    static func complain(_ line: String) {
        write(line + "\n", to: STDERR_FILENO)
    }

    /// A value as one line of JSON on standard output, its members in snake_case.
    static func sayJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        say(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    private static func write(_ text: String, to descriptor: CInt) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
