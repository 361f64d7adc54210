import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

/// The rules of a cluster's node: the log decides, so everything storable is stored before it is sent.
@Suite struct StoresFirstTests {
    private final class Link: DeviceLink {
        func deliver(_ delivery: Delivery) {}
        func dismiss(_ reason: DismissalReason) {}
    }

    private let slot = Slot(device: DeviceNumber(7), app: AppNumber(3))
    private let now = WallTime(seconds: 1_800_000_000)
    private var shard = DeliveryShard(inFlightLimit: 4)

    init() {
        shard.holdRules.storesFirst = true
        shard.slots.setRegistration(Registration(slot: slot, generation: 2, isLive: true, registered: now))
        shard.attach(slot.device, link: Link(), isSavingPower: false, fence: 1)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: 1)
        shard.haveRead([slot], found: [], number: shard.lastRead, now: now)
        shard.clearEffects()
    }

    private func envelope(
        _ number: UInt64,
        to other: Slot? = nil,
        generation: UInt32 = 2,
        priority: Priority = .immediate
    ) -> Envelope {
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: other ?? slot,
            received: now,
            storedUntil: now + .seconds(60),
            priority: priority,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        return Envelope(notification, generation: generation)
    }

    private var delivered: [UInt64] {
        shard.effects.compactMap { effect in
            if case .deliver(_, let delivery) = effect { delivery.envelope.notification.id.low } else { nil }
        }
    }

    private var settled: [CompletionOutcome] {
        shard.effects.compactMap { effect in
            if case .envelope(_, .settle(let outcome)) = effect { outcome } else { nil }
        }
    }

    @Test mutating func `a connected device gets a notification when the store has confirmed it`() throws {
        let envelope = envelope(1)
        #expect(shard.post(envelope) == .pending)
        let tags = shard.effects.compactMap { effect in
            if case .envelope(_, .store(.beforeDelivery, let tag)) = effect { tag } else { nil }
        }
        #expect(delivered.isEmpty && tags == [PutTag(fence: 1, delivery: nil)])
        shard.stored(StoredPut(envelope: envelope, sequence: 9, tag: tags.first))
        #expect(delivered == [1] && settled == [.accepted])
    }

    @Test mutating func `a write with an unknown outcome gets no answer, and reaches no device`() {
        let envelope = envelope(1)
        #expect(shard.post(envelope) == .pending)
        shard.couldNotStore(envelope, .unknown)
        #expect(delivered.isEmpty && settled == [.unknown])
        #expect(shard.connections[slot.device]?.gates[slot.app]?.unconfirmedWrites == 0)
    }

    @Test mutating func `what was posted to an earlier registration reaches no device`() {
        shard.close(slot, fence: 1)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: 1)
        let old = StoredNotification(notification: envelope(1).notification, generation: 1, sequence: 5)
        shard.haveRead([slot], found: [old], number: shard.lastRead, now: now)
        shard.stored(StoredPut(envelope: envelope(2, generation: 1), sequence: 6, tag: nil))
        #expect(delivered.isEmpty)
        shard.stored(StoredPut(envelope: envelope(3), sequence: 7, tag: nil))
        #expect(delivered == [3])
    }

    @Test mutating func `an app that is opened anew waits for its own read`() {
        shard.close(slot, fence: 1)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: 1)
        let first = shard.lastRead
        shard.close(slot, fence: 1)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: 1)
        let second = shard.lastRead
        let waiting = StoredNotification(notification: envelope(1).notification, generation: 2, sequence: 5)
        // The first read began before it was stored, and the second one after.
        shard.haveRead([slot], found: [], number: first, now: now)
        shard.couldNotRead([slot], number: first)
        shard.haveRead([slot], found: [waiting], number: second, now: now)
        #expect(delivered == [1])
    }

    @Test mutating func `what waits for room is read when an app that fills it is removed`() {
        let other = Slot(device: slot.device, app: AppNumber(4))
        shard.slots.setRegistration(Registration(slot: other, generation: 2, isLive: true, registered: now))
        shard.open([AppSubscription(other.app, qualityOfService: 1)], on: slot.device, fence: 1)
        shard.haveRead([other], found: [], number: shard.lastRead, now: now)
        for number in 1...4 {
            shard.stored(StoredPut(envelope: envelope(UInt64(number)), sequence: UInt64(number), tag: nil))
        }
        let waiting = StoredNotification(notification: envelope(5, to: other).notification, generation: 2, sequence: 5)
        shard.stored(StoredPut(envelope: envelope(5, to: other), sequence: 5, tag: nil))
        #expect(delivered == [1, 2, 3, 4])
        let last = shard.lastRead
        shard.endRegistration(slot, at: now)
        #expect(shard.lastRead == last + 1)
        shard.haveRead([other], found: [waiting], number: shard.lastRead, now: now)
        #expect(delivered == [1, 2, 3, 4, 5])
    }

    @Test mutating func `a late report about an older notification opens no gate that a newer one keeps blocked`() {
        shard.setSavingPower(true, device: slot.device, fence: 1)
        shard.stored(StoredPut(envelope: envelope(2, priority: .conserving), sequence: 8, tag: nil))
        shard.stored(StoredPut(envelope: envelope(1), sequence: 7, tag: nil))
        #expect(delivered.isEmpty)
        shard.clearEffects()
        shard.setSavingPower(false, device: slot.device, fence: 1)
        let reads = shard.effects.compactMap { effect in if case .read(let slots, _) = effect { slots } else { nil } }
        #expect(reads == [[RegisteredSlot(slot, generation: 2)]])
    }
}
