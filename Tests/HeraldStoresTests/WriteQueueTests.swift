import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

struct WriteQueueTests {
    private let gate = StoreGate()
    private let queue: WriteQueue
    private let anything = WriteQueue.WakeUp(urgent: 1, isForAny: true)

    init() {
        queue = WriteQueue(gate: gate, countLimit: 8, byteLimit: 100)
    }

    private func put(_ bytes: Int = 0) -> WriteRequest {
        .put(
            Envelope(
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

    private let removal = WriteRequest.remove(StoreScene.slot(1), sequence: 1, nil)

    @Test func `requests are taken in their order, behind earlier ones`() {
        #expect(queue.append(.remove(StoreScene.slot(1), sequence: 1, nil)))
        #expect(queue.append(put()))
        var requests: [WriteRequest] = []
        #expect(queue.take(into: &requests) == 1)
        #expect(queue.append(.remove(StoreScene.slot(3), sequence: 3, nil)))
        #expect(queue.take(into: &requests) == 0)
        let sequences: [UInt64] = requests.map { if case .remove(_, let sequence, _) = $0 { sequence } else { 0 } }
        #expect(sequences == [1, 0, 3])
        #expect(queue.take(into: &requests) == 0)
        #expect(queue.facts.isEmpty)
    }

    @Test func `puts, completions and jobs are urgent, removals and events are not`() {
        let event = JournalEvent(
            time: WallTime(seconds: 1),
            id: NotificationID(high: 1, low: 1),
            uniqueID: NotificationID(high: 1, low: 1),
            slot: StoreScene.slot(1),
            state: .received
        )
        #expect(put().isUrgent)
        #expect(WriteRequest.record(event, Completion(handler: StoreWitness(), number: 1)).isUrgent)
        #expect(WriteRequest.job(WriteJob(run: { _, _ in {} }, fail: { _ in })).isUrgent)
        #expect(!removal.isUrgent)
        #expect(!WriteRequest.record(event, nil).isUrgent)
    }

    @Test func `a pending request ends the sleep at once`() {
        _ = queue.append(put())
        queue.sleep(for: nil, wakeUp: anything)
        #expect(queue.facts.urgent == 1)
    }

    @Test func `the sleep ends at its timeout`() {
        _ = queue.append(removal)
        queue.sleep(for: .milliseconds(1), wakeUp: WriteQueue.WakeUp(urgent: 1, isForAny: false))
        queue.sleep(for: .seconds(-1), wakeUp: WriteQueue.WakeUp(urgent: 1, isForAny: false))
        #expect(queue.facts.urgent == 0)
    }

    @Test func `the number of urgent requests ends the sleep, from any thread`() async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { _ = queue.append(put()) } }
            queue.sleep(for: nil, wakeUp: WriteQueue.WakeUp(urgent: 5, isForAny: false))
            #expect(queue.facts.urgent == 5)
        }
    }

    @Test func `too many requests close the gate, which opens below the limit`() {
        for _ in 0..<7 { _ = queue.append(put()) }
        #expect(gate.isOpen)
        _ = queue.append(removal)
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 0)
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 0)
        #expect(gate.isOpen)
    }

    @Test func `too many bytes close the gate too`() {
        _ = queue.append(put(60))
        #expect(gate.isOpen)
        _ = queue.append(put(40))
        #expect(!gate.isOpen)
        queue.finished(count: 1, bytes: 60)
        #expect(gate.isOpen)
    }

    @Test func `a closed queue refuses requests, ends the sleep, and notifies each closer once`() {
        let told = Atomic<Int>(0)
        queue.close { told.wrappingAdd(1, ordering: .relaxed) }
        queue.sleep(for: nil, wakeUp: anything)
        #expect(!queue.append(put()))
        #expect(!gate.isOpen)
        #expect(told.load(ordering: .relaxed) == 0)
        queue.closed()
        #expect(told.load(ordering: .relaxed) == 1)
        queue.close { told.wrappingAdd(1, ordering: .relaxed) }
        #expect(told.load(ordering: .relaxed) == 2)
    }
}
