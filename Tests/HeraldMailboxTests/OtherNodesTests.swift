import HeraldModel
import Testing

@testable import HeraldMailbox

/// The decisions about what the other nodes of a cluster do.
@Suite struct OtherNodesTests {
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
    }

    private mutating func connect(fence: UInt64 = 1) {
        shard.attach(slot.device, link: Link(), isSavingPower: false, fence: fence)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: fence)
        shard.haveRead([slot], found: [], number: shard.lastRead, now: now)
        shard.clearEffects()
    }

    private func notification(_ number: UInt64, expires: Bool = true) -> Notification {
        Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: slot,
            received: now,
            storedUntil: expires ? now + .seconds(60) : nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
    }

    private func stored(_ number: UInt64, generation: UInt32 = 2) -> StoredNotification {
        StoredNotification(notification: notification(number), generation: generation, sequence: number)
    }

    private func once(_ number: UInt64, generation: UInt32 = 2) -> Envelope {
        Envelope(notification(number, expires: false), generation: generation)
    }

    private var delivered: [UInt64] {
        shard.effects.compactMap { effect in
            if case .deliver(_, let delivery) = effect { delivery.envelope.notification.id.low } else { nil }
        }
    }

    private func effects(on id: UInt64) -> [EnvelopeEffect] {
        shard.effects.compactMap { effect in
            if case .envelope(let envelope, let effect) = effect, envelope.notification.id.low == id {
                effect
            } else {
                nil
            }
        }
    }

    private mutating func hear(_ stored: StoredNotification...) -> [Bool] {
        stored.map { shard.storedElsewhere($0, now: now) }
    }

    private mutating func take(_ envelope: Envelope) -> PassedDelivery { shard.deliverOnce(envelope, now: now) }

    private mutating func post(_ envelope: Envelope) -> PostDecision { shard.post(envelope) }

    @Test mutating func `a notification that another node has stored is delivered once, and no older one after it`() {
        connect()
        #expect(hear(stored(8)) == [true])
        #expect(hear(stored(8), stored(6)) == [true, true])
        #expect(delivered == [8])
        #expect(hear(stored(9)) == [true])
        #expect(delivered == [8, 9] && effects(on: 8).isEmpty)
    }

    @Test mutating func `a notification from before the claim of the connection is left to its read`() {
        connect(fence: 8)
        #expect(hear(stored(7), stored(8)) == [true, true] && delivered.isEmpty)
        #expect(hear(stored(9)) == [true] && delivered == [9])
    }

    @Test mutating func `while the mailbox is read, it waits for the answer`() {
        shard.attach(slot.device, link: Link(), isSavingPower: false, fence: 1)
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: 1)
        #expect(hear(stored(8)) == [true] && delivered.isEmpty)
        shard.haveRead([slot], found: [stored(5)], number: shard.lastRead, now: now)
        #expect(delivered == [8])
    }

    @Test mutating func `an unknown registration changes nothing`() {
        connect()
        #expect(hear(stored(8, generation: 3)) == [false])
        #expect(take(once(9, generation: 3)) == .unknownRegistration)
        #expect(shard.effects.isEmpty)
    }

    @Test mutating func `a single attempt goes to the connection, wherever it is`() {
        #expect(post(once(1)) == .accepted)
        #expect(effects(on: 1) == [.record(.received), .passOn])
        #expect(take(once(2)) == .notHere)
        #expect(effects(on: 2).isEmpty)
        connect()
        #expect(take(once(3)) == .taken && post(once(4)) == .accepted)
        #expect(delivered == [3, 4] && effects(on: 3).isEmpty)
        shard.close(slot, fence: 1)
        #expect(take(once(5)) == .taken && post(once(6)) == .accepted)
        #expect(effects(on: 5) == [.record(.discardedDeviceOffline)])
        #expect(effects(on: 6) == [.record(.received), .record(.discardedDeviceOffline)])
    }

    @Test mutating func `a connection that another node has overtaken ends, and no newer one`() {
        connect(fence: 5)
        shard.letGo(slot.device, fence: 4)
        #expect(shard.connections[slot.device] != nil && shard.effects.isEmpty)
        shard.letGo(slot.device, fence: 5)
        let reasons = shard.effects.compactMap { effect -> DismissalReason? in
            if case .dismiss(_, let reason) = effect { reason } else { nil }
        }
        #expect(shard.connections[slot.device] == nil && reasons == [.takenOver])
    }
}
