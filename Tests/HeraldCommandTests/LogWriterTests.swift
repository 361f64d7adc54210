import Foundation
import HeraldModel
import Testing

@testable import HeraldCommand

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
        writer.flush()
        try pipe.fileHandleForWriting.close()
        let text = try #require(try pipe.fileHandleForReading.readToEnd())
        #expect(Array(text) == (0..<100).flatMap(line))
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
