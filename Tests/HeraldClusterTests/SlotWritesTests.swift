import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import NIOCore
import Testing

@testable import HeraldCluster

@Suite struct SlotWritesTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private var writes = SlotWrites()

    private func write(
        _ number: UInt64,
        deadline seconds: Int64 = 5,
        _ reason: StoreReason = .deviceOffline
    ) -> SlotWrites.Write {
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
            received: WallTime(seconds: 1_800_000_000),
            storedUntil: WallTime(seconds: 1_800_003_600),
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        return SlotWrites.Write(
            envelope: Envelope(notification),
            reason: reason,
            tag: nil,
            deadline: start + .seconds(seconds)
        )
    }

    private func uniqueID(_ number: UInt64) -> NotificationID { NotificationID(high: 2, low: number) }

    private func words(_ orders: [SlotWrites.Order]) -> [String] {
        func numbers(_ write: SlotWrites.Write) -> [UInt64] {
            (write.overtaken + [write]).map(\.envelope.notification.id.low)
        }
        return orders.map { order in
            switch order {
            case .append(let write): "append \(numbers(write))"
            case .reportStored(let write, let sequence): "stored \(numbers(write)) at \(sequence)"
            case .reportFailed(let write): "failed \(numbers(write))"
            case .reportUnknown(let write): "unknown \(numbers(write))"
            case .settle(let write): "settle \(numbers(write))"
            case .pause: "pause"
            }
        }
    }

    @Test mutating func `one put is on its way, and the newest of those behind it is the next`() {
        #expect(words(writes.put(write(1))) == ["append [1]"])
        #expect(writes.put(write(2)).isEmpty && writes.put(write(3)).isEmpty)
        #expect(words(writes.appended(.stored(7), at: start)) == ["stored [1] at 7", "append [2, 3]"])
        #expect(words(writes.appended(.stored(8), at: start)) == ["stored [2, 3] at 8"])
        #expect(writes.isIdle)
    }

    @Test mutating func `of puts for a connected device each is made, one after another`() {
        _ = writes.put(write(1))
        for number in 2...3 { _ = writes.put(write(UInt64(number))) }
        for number in 4...5 { _ = writes.put(write(UInt64(number), .beforeDelivery)) }
        _ = writes.put(write(6))
        #expect(words(writes.appended(.stored(7), at: start)) == ["stored [1] at 7", "append [2, 3, 4]"])
        #expect(words(writes.appended(.stored(8), at: start)) == ["stored [2, 3, 4] at 8", "append [5]"])
        #expect(words(writes.appended(.notSent, at: start)) == ["pause"])
        #expect(words(writes.pauseOver(at: start)) == ["append [5]"])
        #expect(words(writes.appended(.unknown, at: start)) == ["settle [5]"])
        #expect(words(writes.settled(uniqueID(5), at: nil, now: start)) == ["unknown [5]", "append [6]"])
        #expect(words(writes.appended(.stored(9), at: start)) == ["stored [6] at 9"])
        #expect(writes.isIdle)
    }

    @Test mutating func `of too many puts for a connected device the oldest give way`() {
        let count = UInt64(ClusterLimits.putsInTurn)
        for number in 0...count + 2 { _ = writes.put(write(number, .beforeDelivery)) }
        let orders = words(writes.appended(.stored(7), at: start))
        #expect(orders == ["stored [0] at 7", "append [1, 2, 3]"])
        #expect(words(writes.appended(.stored(8), at: start)) == ["stored [1, 2, 3] at 8", "append [4]"])
    }

    @Test mutating func `a put that was not made gives way to the newest behind it, which keeps all that it overtook`()
    {
        _ = writes.put(write(1))
        for number in 2...4 { _ = writes.put(write(UInt64(number))) }
        #expect(words(writes.appended(.notSent, at: start)) == ["pause"])
        #expect(words(writes.pauseOver(at: start)) == ["append [1, 2, 3, 4]"])
    }

    @Test mutating func `a put that was not made is repeated until its deadline, and fails then`() {
        _ = writes.put(write(1))
        let refusal = AppendOutcome.refused(LogRefusal(code: 10077, text: "no space"))
        #expect(words(writes.appended(refusal, at: start)) == ["pause"])
        #expect(words(writes.pauseOver(at: start)) == ["append [1]"])
        #expect(words(writes.appended(.notSent, at: start + .seconds(5))) == ["failed [1]"])
        #expect(writes.isIdle && writes.pauseOver(at: start).isEmpty)
    }

    @Test mutating func `a put with a lost answer is never sent again, and those behind it wait until it is settled`() {
        _ = writes.put(write(1))
        _ = writes.put(write(2))
        #expect(words(writes.appended(.unknown, at: start)) == ["settle [1]"])
        #expect(writes.put(write(3)).isEmpty)
        #expect(writes.settled(uniqueID(2), at: 9, now: start).isEmpty, "another put than the one that is settled")
        #expect(words(writes.settled(uniqueID(1), at: 7, now: start)) == ["stored [1] at 7", "append [2, 3]"])
        #expect(words(writes.appended(.unknown, at: start)) == ["settle [2, 3]"])
        #expect(words(writes.settled(uniqueID(3), at: nil, now: start)) == ["unknown [2, 3]"])
        #expect(writes.settled(uniqueID(3), at: 8, now: start).isEmpty, "it has been reported")
        #expect(writes.isIdle)
    }

    @Test mutating func `a put that waits for a settling past its own deadline fails`() {
        _ = writes.put(write(1))
        for (number, deadline) in [(2, 5), (3, 6), (4, 8)] {
            _ = writes.put(write(UInt64(number), deadline: Int64(deadline)))
        }
        _ = writes.appended(.unknown, at: start + .seconds(5))
        let orders = writes.settled(uniqueID(1), at: nil, now: start + .seconds(7))
        #expect(words(orders) == ["unknown [1]", "failed [2]", "failed [3]", "append [4]"])
    }

    @Test mutating func `puts during a pause wait for its end`() {
        _ = writes.put(write(1))
        _ = writes.appended(.notSent, at: start)
        #expect(writes.put(write(2)).isEmpty && writes.put(write(3)).isEmpty)
        #expect(words(writes.pauseOver(at: start)) == ["append [1, 2, 3]"])
        #expect(words(writes.appended(.stored(7), at: start)) == ["stored [1, 2, 3] at 7"])
    }

    @Test mutating func `one that was overtaken fails at its own deadline`() {
        _ = writes.put(write(1, deadline: 1))
        _ = writes.put(write(2))
        #expect(words(writes.appended(.notSent, at: start)) == ["pause"])
        #expect(words(writes.pauseOver(at: start)) == ["append [1, 2]"])
        #expect(words(writes.appended(.notSent, at: start + .seconds(2))) == ["failed [1]", "pause"])
    }
}
