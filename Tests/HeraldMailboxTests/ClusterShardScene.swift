import HeraldModel

@testable import HeraldMailbox

/// A share of the devices at a node of a cluster, with one registration.
struct ClusterShardScene {
    private final class Link: DeviceLink {
        func deliver(_ delivery: Delivery) {}
        func dismiss(_ reason: DismissalReason) {}
    }

    let slot = Slot(device: DeviceNumber(7), app: AppNumber(3))
    let generation: UInt32 = 2
    let now = WallTime(seconds: 1_800_000_000)
    var shard: DeliveryShard

    init(budget: BackgroundBudget = BackgroundBudget()) {
        shard = DeliveryShard(inFlightLimit: 4, budget: budget)
        shard.holdRules.storesFirst = true
        register(slot)
    }

    mutating func register(_ slot: Slot) {
        shard.slots.setRegistration(Registration(slot: slot, generation: generation, isLive: true, registered: now))
    }

    /// Connects the device, which subscribes to its app; the mailbox has not been read.
    mutating func attach(fence: UInt64 = 1) {
        shard.attach(slot.device, link: Link(), isSavingPower: false, fence: fence)
        open(slot, fence: fence)
    }

    mutating func open(_ slot: Slot, fence: UInt64 = 1) {
        shard.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: fence)
    }

    /// Reads the mailbox of a slot, which is empty.
    mutating func readNothing(_ slot: Slot) {
        shard.haveRead([slot], found: [], number: shard.lastRead, now: now)
    }

    /// Connects the device, for which nothing waits.
    mutating func connect(fence: UInt64 = 1) {
        attach(fence: fence)
        readNothing(slot)
        shard.clearEffects()
    }

    func envelope(
        _ number: UInt64,
        to other: Slot? = nil,
        generation: UInt32? = nil,
        priority: Priority = .immediate,
        pushType: PushType = .alert,
        isStorable: Bool = true
    ) -> Envelope {
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: other ?? slot,
            received: now,
            storedUntil: isStorable ? now + .seconds(60) : nil,
            priority: priority,
            pushType: pushType,
            collapseID: nil,
            payload: []
        )
        return Envelope(notification, generation: generation ?? self.generation)
    }

    /// A notification that is stored; its number is its sequence too.
    func stored(_ envelope: Envelope) -> StoredNotification {
        StoredNotification(
            notification: envelope.notification,
            generation: envelope.generation,
            sequence: envelope.notification.id.low
        )
    }

    /// Reports a notification as stored; its number is its sequence too, unless another one is given.
    mutating func report(_ envelope: Envelope, sequence: UInt64? = nil, tag: PutTag? = nil) {
        shard.stored(StoredPut(envelope: envelope, sequence: sequence ?? envelope.notification.id.low, tag: tag))
    }

    /// The numbers of the notifications that the device was sent, in order.
    var delivered: [UInt64] {
        shard.effects.compactMap { effect in
            if case .deliver(_, let delivery) = effect { delivery.envelope.notification.id.low } else { nil }
        }
    }

    /// The answers to providers, in order.
    var settled: [CompletionOutcome] {
        shard.effects.compactMap { effect in
            if case .envelope(_, .settle(let outcome)) = effect { outcome } else { nil }
        }
    }

    func effects(on number: UInt64) -> [EnvelopeEffect] {
        shard.effects.compactMap { effect in
            if case .envelope(let envelope, let effect) = effect, envelope.notification.id.low == number {
                effect
            } else {
                nil
            }
        }
    }
}
