import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

struct WriteQueueTests {
    private let gate = StoreGate()
    private let queue: WriteQueue
    private let anything = WriteQueue.Alarm(urgent: 1, isForAny: true)

    init() {
        queue = WriteQueue(gate: gate, countLimit: 8, byteLimit: 100)
    }

    private func put(_ bytes: Int = 0) -> WriteOrder {
        .put(
            Letter(
                HeraldModel.Notification(
                    id: NotificationID(high: 1, low: 1),
                    uniqueID: NotificationID(high: 2, low: 2),
                    slot: StoreScene.slot(1),
                    received: WallTime(seconds: 1),
                    storedUntil: nil,
                    priority: .immediate,
                    pushType: .alert,
                    collapseID: nil,
                    payload: [UInt8](repeating: 0, count: bytes)
                )
            ),
            reason: .power,
            tag: nil
        )
    }

    private let removal = WriteOrder.remove(StoreScene.slot(1), sequence: 1, nil)

    @Test func `orders are handed over in the order in which they were left, behind those that are there`() {
        #expect(queue.append(.remove(StoreScene.slot(1), sequence: 1, nil)))
        #expect(queue.append(put()))
        var orders: [WriteOrder] = []
        #expect(queue.take(into: &orders) == 1)
        #expect(queue.append(.remove(StoreScene.slot(3), sequence: 3, nil)))
        #expect(queue.take(into: &orders) == 0)
        let sequences: [UInt64] = orders.map { if case .remove(_, let sequence, _) = $0 { sequence } else { 0 } }
        #expect(sequences == [1, 0, 3])
        #expect(queue.take(into: &orders) == 0)
        #expect(queue.facts.isEmpty)
    }

    @Test func `somebody waits for a put, a receipt and a job, nobody for a removal and a line`() {
        let event = JournalEvent(
            time: WallTime(seconds: 1),
            id: NotificationID(high: 1, low: 1),
            uniqueID: NotificationID(high: 1, low: 1),
            slot: StoreScene.slot(1),
            state: .received
        )
        #expect(put().isUrgent)
        #expect(WriteOrder.record(event, Receipt(desk: StoreWitness(), number: 1)).isUrgent)
        #expect(WriteOrder.job(WriteJob(run: { _, _ in {} }, fail: { _ in })).isUrgent)
        #expect(!removal.isUrgent)
        #expect(!WriteOrder.record(event, nil).isUrgent)
    }

    @Test func `what is there already wakes at once`() {
        _ = queue.append(put())
        queue.sleep(for: nil, alarm: anything)
        #expect(queue.facts.urgent == 1)
    }

    @Test func `sleep ends when its time is over`() {
        _ = queue.append(removal)
        queue.sleep(for: .milliseconds(1), alarm: WriteQueue.Alarm(urgent: 1, isForAny: false))
        queue.sleep(for: .seconds(-1), alarm: WriteQueue.Alarm(urgent: 1, isForAny: false))
        #expect(queue.facts.urgent == 0)
    }

    @Test func `the sleeper is woken by as many as it waits for, from any thread`() async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { _ = queue.append(put()) } }
            queue.sleep(for: nil, alarm: WriteQueue.Alarm(urgent: 5, isForAny: false))
            #expect(queue.facts.urgent == 5)
        }
    }

    @Test func `too many close the gate, and it opens again some way below`() {
        for _ in 0..<7 { _ = queue.append(put()) }
        #expect(gate.isOpen)
        _ = queue.append(removal)
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 0)
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 0)
        #expect(gate.isOpen)
    }

    @Test func `too many bytes close it too`() {
        _ = queue.append(put(60))
        #expect(gate.isOpen)
        _ = queue.append(put(40))
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 60)
        #expect(gate.isOpen)
    }

    @Test func `a closed queue takes nothing, wakes the sleeper, and tells each who closed it once`() {
        let told = Atomic<Int>(0)
        queue.close { told.wrappingAdd(1, ordering: .relaxed) }
        queue.sleep(for: nil, alarm: anything)
        #expect(!queue.append(put()))
        #expect(!gate.isOpen)
        #expect(told.load(ordering: .relaxed) == 0)
        queue.closed()
        #expect(told.load(ordering: .relaxed) == 1)
        queue.close { told.wrappingAdd(1, ordering: .relaxed) }
        #expect(told.load(ordering: .relaxed) == 2)
    }
}
