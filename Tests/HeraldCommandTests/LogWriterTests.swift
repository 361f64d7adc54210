import Foundation
import HeraldModel
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct LogWriterTests {
    private let pipe = Pipe()
    private var descriptor: CInt { pipe.fileHandleForWriting.fileDescriptor }

    private func writer() -> LogWriter {
        LogWriter(.stream(descriptor)) { Array("dropped \($0)\n".utf8) }
    }

    private func line(_ number: Int) -> [UInt8] {
        Array("\(number) \(String(repeating: "x", count: 200))\n".utf8)
    }

    @Test func `lines come whole and in order`() throws {
        let writer = writer()
        for number in 0..<100 { writer.write(line(number)) }
        // On a busy machine everything takes longer.
        writer.flush(within: .seconds(240))
        try pipe.fileHandleForWriting.close()
        let text = try #require(try pipe.fileHandleForReading.readToEnd())
        #expect(Array(text) == (0..<100).flatMap(line))
    }

    @Test func `entries that the journal does not take are counted, and told when it takes some again`() throws {
        let path = NSTemporaryDirectory() + "herald-\(UInt32.random(in: 0 ... .max))"
        let sender = try #require(DatagramSocket(longestWait: 5))
        defer { sender.close() }
        let writer = LogWriter(.journal(sender, path)) { Array("dropped \($0)\n".utf8) }
        for number in 0..<3 { writer.write(line(number)) }
        writer.flush(within: .seconds(60))
        let journal = try Self.bound(to: path)
        defer {
            close(journal)
            unlink(path)
        }
        writer.write(line(3))
        #expect(Self.next(journal) == line(3))
        #expect(Self.next(journal) == Array("dropped 3\n".utf8))
        // Longer than any datagram.
        writer.write([UInt8](repeating: 0x78, count: LogWriter.maximumBytes))
        #expect(Self.next(journal) == Array("dropped 1\n".utf8))
    }

    /// A socket for datagrams at a path.
    private static func bound(to path: String) throws -> CInt {
        #if canImport(Glibc)
        let kind = Int32(SOCK_DGRAM.rawValue)
        #else
        let kind = SOCK_DGRAM
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        let code = withUnsafePointer(to: name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(code == 0)
        return descriptor
    }

    /// The next datagram.
    private static func next(_ descriptor: CInt) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(count, 0)))
    }

    /// A full pipe takes 64 KiB; without a thread of its own the writer would stop here for ever.
    @Test func `a reader that stalls stops nobody, and is told how many lines it missed`() throws {
        let writer = writer()
        let count = 20_000
        for number in 0..<count { writer.write(line(number)) }
        writer.flush(within: .milliseconds(10))
        let reading = pipe.fileHandleForReading
        var text = ""
        while !text.hasSuffix("\n") || !text.contains("dropped ") {
            text += String(decoding: reading.availableData, as: UTF8.self)
        }
        let lines = text.split(separator: "\n")
        let dropped = try #require(lines.last { $0.hasPrefix("dropped ") }.flatMap { Int($0.dropFirst(8)) })
        let kept = lines.filter { !$0.hasPrefix("dropped ") }.compactMap { Int($0.prefix { $0 != " " }) }
        #expect(kept.count + dropped == count && dropped > 0)
        #expect(kept == Array(0..<kept.count), "the oldest lines are kept, in order")
        #expect(kept.count * 200 > LogWriter.maximumBytes)
        writer.write(line(1))
        writer.flush()
        #expect(reading.availableData.count == line(1).count)
    }
}
