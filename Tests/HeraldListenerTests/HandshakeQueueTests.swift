import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

struct HandshakeQueueTests {
    private let loop = EmbeddedEventLoop()

    private func pass() { loop.advanceTime(by: HandshakeQueue.pause) }

    @Test func `a burst begins in order, a few at a time`() {
        let queue = HandshakeQueue(loop)
        var begun: [Int] = []
        for number in 0..<10
        where queue.begins(later: {
            begun.append(number)
            return true
        }) { begun.append(number) }
        #expect(begun == Array(0..<HandshakeQueue.batch))
        pass()
        #expect(begun == Array(0..<2 * HandshakeQueue.batch))
        // Nobody overtakes those that wait.
        #expect(
            !queue.begins(later: {
                begun.append(10)
                return true
            })
        )
        pass()
        #expect(begun == Array(0...10))
        pass()
        #expect(queue.begins(later: { true }))
    }

    @Test func `connections that are gone cost no turn`() {
        let queue = HandshakeQueue(loop)
        var begun = 0
        for _ in 0..<HandshakeQueue.batch { #expect(queue.begins(later: { true })) }
        for _ in 0..<1000 { _ = queue.begins(later: { false }) }
        _ = queue.begins(later: {
            begun += 1
            return true
        })
        pass()
        #expect(begun == 1)
    }
}
