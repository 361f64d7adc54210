import HeraldWire
import NIOCore
import Synchronization
import Testing

@testable import HeraldCourier

@Suite struct ArrivalQueueTests {
    private let start = NIODeadline.uptimeNanoseconds(1 << 40)
    private var queue = ArrivalQueue<Int>(limit: 3, longestWait: .seconds(5))

    /// Adds devices 0, 1, 2 and so on.
    /// - Returns: Those that begin.
    private mutating func add(_ count: Int, reads: Int = 0) -> [Int] {
        (0..<count).flatMap { queue.add($0, at: start, reads: reads).begins }
    }

    @Test mutating func `the others wait in their order`() {
        #expect(add(6) == [0, 1, 2])
        #expect(queue.ended(at: start, reads: 0).begins == [3])
        #expect(queue.ended(at: start, reads: 0).begins == [4])
        #expect(queue.count == 1)
    }

    @Test mutating func `a device that has arrived stores its session before the next one begins`() {
        #expect(add(4) == [0, 1, 2])
        queue.continues()
        #expect(queue.ended(at: start, reads: 0).begins.isEmpty)
        #expect(queue.ended(at: start, reads: 0).begins == [3])
    }

    @Test mutating func `reads of mailboxes take room, and one device at least is under way`() {
        #expect(add(4, reads: 9) == [0])
        #expect(queue.ended(at: start, reads: 9).begins == [1])
        #expect(queue.ended(at: start, reads: 1).begins == [2, 3])
    }

    @Test mutating func `who has waited for too long is refused, and the others go on`() {
        _ = add(4)
        let later = start + .seconds(6)
        #expect(queue.add(4, at: later, reads: 0).refused == [3])
        #expect(queue.turn(at: later, reads: 0).begins.isEmpty)
        let turn = queue.ended(at: later, reads: 0)
        #expect(turn.refused.isEmpty && turn.begins == [4])
    }
}

@Suite struct ArrivalsTests {
    @Test func `a device that has waited is told that the service is busy, and why`() {
        let refusal = ConnectRefusal(.busy)
        #expect(refusal.code == .serverBusy)
        #expect(refusal.reason == "too many devices connect at once: try again later")
        #expect(ConnectRefusal(.failed).code == .serverUnavailable)
    }

    @Test func `arrivals that end at once begin one after the other, and do not pile up on the stack`() {
        var configuration = CourierConfiguration()
        configuration.arrivalsUnderWay = 1
        // None waits for too long, however slow the machine is.
        configuration.longestArrivalWait = .seconds(3600)
        let arrivals = Arrivals(configuration) { 0 }
        let begun = Atomic(0)
        // The first holds the only place while the others gather.
        arrivals.add(
            Arrivals.Arrival {
            } refuse: {
            }
        )
        for _ in 0..<100_000 {
            arrivals.add(
                Arrivals.Arrival {
                    begun.wrappingAdd(1, ordering: .relaxed)
                    arrivals.ended()
                } refuse: {
                }
            )
        }
        #expect(arrivals.waitingCount == 100_000)
        arrivals.ended()
        #expect(begun.load(ordering: .relaxed) == 100_000 && arrivals.waitingCount == 0)
    }
}
