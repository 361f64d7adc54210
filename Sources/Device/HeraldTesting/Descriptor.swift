import CPosix
import Foundation

/// An open file or an end of a pipe, which no child inherits; released means closed.
final class Descriptor: Sendable {
    let number: CInt

    init(_ number: CInt) {
        self.number = number
    }

    /// Opens a file.
    /// - Throws: ``HeraldTestError``.
    init(opening path: String, _ flags: CInt) throws {
        number = open(path, flags | O_CLOEXEC, 0o600)
        guard number >= 0 else {
            throw HeraldTestError("cannot open \(path): \(String(cString: strerror(errno)))")
        }
    }

    deinit {
        if number >= 0 { close(number) }
    }

    /// Makes a pipe.
    /// - Throws: ``HeraldTestError``.
    static func pipe() throws -> (reader: Descriptor, writer: Descriptor) {
        var ends: [CInt] = [-1, -1]
        let code = herald_pipe(&ends)
        guard code == 0 else { throw HeraldTestError("cannot make a pipe: \(String(cString: strerror(code)))") }
        return (Descriptor(ends[0]), Descriptor(ends[1]))
    }

    /// The next bytes; nil at the end.
    func next() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        var count = read(number, &bytes, bytes.count)
        while count < 0, errno == EINTR { count = read(number, &bytes, bytes.count) }
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    /// All bytes up to the end, read on a thread of its own.
    func text() async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var all: [UInt8] = []
                while let bytes = self.next() { all += bytes }
                continuation.resume(returning: String(decoding: all, as: UTF8.self))
            }
        }
    }
}
