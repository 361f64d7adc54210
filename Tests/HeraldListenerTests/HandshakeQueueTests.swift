import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

struct HandshakeQueueTests {
    private let loop = EmbeddedEventLoop()

    private let network = ClientAddress(ipv4: 1).network

    private func pass() { loop.advanceTime(by: HandshakeQueue.pause) }

    @Test func `a burst begins in order, a few at a time`() {
        let queue = HandshakeQueue(loop)
        var begun: [Int] = []
        for number in 0..<10
        where queue.begins(
            of: network,
            later: {
                begun.append(number)
                return true
            }
        ) { begun.append(number) }
        #expect(begun == Array(0..<HandshakeQueue.batch))
        pass()
        #expect(begun == Array(0..<2 * HandshakeQueue.batch))
        // Nobody overtakes those that wait.
        #expect(
            !queue.begins(
                of: network,
                later: {
                    begun.append(10)
                    return true
                }
            )
        )
        pass()
        #expect(begun == Array(0...10))
        pass()
        #expect(queue.begins(of: network, later: { true }))
    }

    @Test func `connections that are gone cost no turn`() {
        let queue = HandshakeQueue(loop)
        var begun = 0
        for _ in 0..<HandshakeQueue.batch { #expect(queue.begins(of: network, later: { true })) }
        for _ in 0..<1000 { _ = queue.begins(of: network, later: { false }) }
        _ = queue.begins(
            of: network,
            later: {
                begun += 1
                return true
            }
        )
        pass()
        #expect(begun == 1)
    }

    @Test func `a storm from one network delays the handshakes of others by a few turns`() {
        let queue = HandshakeQueue(loop)
        var begun: [UInt32: Int] = [:]
        func come(from address: UInt32) {
            let begins = queue.begins(
                of: ClientAddress(ipv4: address).network,
                later: {
                    begun[address, default: 0] += 1
                    return true
                }
            )
            if begins { begun[address, default: 0] += 1 }
        }
        for _ in 0..<4000 { come(from: 1) }
        for address in 2...11 as ClosedRange<UInt32> { come(from: address) }
        // Eleven networks take turns. In the order of arrival the first of the ten would begin after 1,000 pauses.
        for _ in 0..<3 { pass() }
        #expect((2...11).allSatisfy { begun[$0] == 1 } && begun[1] == 6)
        for _ in 0..<1000 { pass() }
        #expect(begun[1] == 4000)
    }
}
