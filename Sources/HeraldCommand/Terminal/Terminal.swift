import Foundation

/// Writes to standard output and standard error.
enum Terminal {
    /// One line on standard output, at once: who reads it through a pipe does not wait for a buffer to fill.
    static func say(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// One line of a service on standard output; lost if its reader has stalled.
    static func announce(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO, patience: patience)
    }

    /// One line on standard error; lost if its reader has stalled, so that a service ends that has failed.
    static func complain(_ line: String) {
        write(line + "\n", to: STDERR_FILENO, patience: patience)
    }

    /// How long a reader may stall, in milliseconds.
    private static let patience: CInt = 1000
    /// The bytes that a pipe takes at once when it is ready (POSIX, `PIPE_BUF`).
    private static let pieceBytes = 512

    /// A value as one line of JSON on standard output, its members in snake_case.
    static func sayJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        say(String(decoding: try encoder.encode(value), as: UTF8.self))
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
