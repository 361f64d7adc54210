import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldWire

private final class Batches: Sendable {
    private let batches = Mutex<[[Int]]>([])

    func add(_ batch: [Int]) { batches.withLock { $0.append(batch) } }

    var all: [[Int]] { batches.withLock { $0 } }
}

@Suite struct LoopInboxTests {
    @Test func `items that arrive before the loop runs come in one batch, in order`() {
        let loop = EmbeddedEventLoop()
        let batches = Batches()
        let inbox = LoopInbox<Int>(on: loop) { batches.add($0) }
        for item in 1...5 { inbox.add(item) }
        #expect(batches.all.isEmpty)
        loop.run()
        inbox.add(6)
        loop.run()
        #expect(batches.all == [[1, 2, 3, 4, 5], [6]])
    }

    @Test func `an item that arrives during delivery wakes the loop again`() {
        let loop = EmbeddedEventLoop()
        let batches = Batches()
        let holder = Mutex<LoopInbox<Int>?>(nil)
        let inbox = LoopInbox<Int>(on: loop) { items in
            batches.add(items)
            if items == [1] { holder.withLock { $0 }?.add(2) }
        }
        holder.withLock { $0 = inbox }
        inbox.add(1)
        loop.run()
        #expect(batches.all == [[1], [2]])
    }
}
