import NIOCore
import Testing

@testable import HeraldListener

/// Buffers of every size hold what is written to them, wherever their memory comes from.
@Suite struct SparseBuffersTests {
    private let allocator = SparseBuffers.allocator

    @Test(arguments: [1, 512, 16_383, 16_384, 16_385, 32_768, 32_769, 100_000])
    func `a buffer holds what it is asked for`(size: Int) {
        var buffer = allocator.buffer(capacity: size)
        #expect(buffer.capacity >= size)
        let bytes = (0..<buffer.capacity).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        buffer.writeBytes(bytes)
        #expect(buffer.readableBytesView.elementsEqual(bytes))
    }

    @Test(arguments: [
        (512, 16_384), (512, 32_768), (16_384, 20_000), (16_384, 32_768), (32_768, 40_000), (20_000, 500_000),
    ])
    func `a buffer that grows keeps what it holds`(from size: Int, to larger: Int) {
        var buffer = allocator.buffer(capacity: size)
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        buffer.writeBytes(bytes)
        buffer.reserveCapacity(larger)
        #expect(buffer.capacity >= larger)
        #expect(buffer.readableBytesView.elementsEqual(bytes))
    }

    @Test func `buffers do not share memory, and a copy is a copy`() {
        var buffers = (0..<100).map { number in
            var buffer = allocator.buffer(capacity: 32 * 1024)
            buffer.writeRepeatingByte(UInt8(number), count: 32 * 1024)
            return buffer
        }
        let first = buffers[0]
        buffers[0].setInteger(UInt8(200), at: 0)
        #expect(first.getInteger(at: 0, as: UInt8.self) == 0)
        // Every other one is given back and taken again.
        for number in stride(from: 0, to: 100, by: 2) {
            buffers[number] = allocator.buffer(capacity: 16 * 1024)
            buffers[number].writeRepeatingByte(255, count: 16 * 1024)
        }
        for number in stride(from: 1, to: 100, by: 2) {
            #expect(buffers[number].readableBytesView.allSatisfy { $0 == UInt8(number) })
        }
    }

    #if canImport(Glibc)
    @Test func `a buffer that was full gives its pages back when it is freed`() {
        func fill() {
            var buffers = (0..<64).map { _ in allocator.buffer(capacity: 32 * 1024) }
            for index in buffers.indices { buffers[index].writeRepeatingByte(1, count: 32 * 1024) }
        }
        fill()
        // One that is taken afterwards is as good as new: nobody reads what the other connection left.
        let buffer = allocator.buffer(capacity: 32 * 1024)
        buffer.withVeryUnsafeBytes { memory in #expect(memory.allSatisfy { $0 == 0 }) }
    }
    #endif
}
