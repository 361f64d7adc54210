package import HeraldModel

/// Stores the mailbox: at most one notification for each slot, the newest put.
///
/// Puts are asynchronous and reported in batches. A removal names a sequence, and does nothing if a newer notification took
/// the slot. No call needs a scan. Every engine passes the same conformance suite (`StoreConformance` in the test support).
///
/// In SQLite, a put and its journal lines are one transaction. An engine whose journal is apart from its mailbox writes the
/// lines soon after the put. It may leave out the line `replaced`, and `expired`, which follow from the other lines.
package protocol MailboxStore: Sendable {
    /// Whether the store can take more: false while it is overloaded, its disk is full, or it has failed.
    ///
    /// Cheap, and possibly a moment out of date.
    var isAccepting: Bool { get }

    /// Whether the store can take more for a device: a part of a cluster's log may be out of service.
    func isAccepting(for device: DeviceNumber) -> Bool

    /// Whether the store takes nothing more for the only reason that it has too much to write.
    var isOverloaded: Bool { get }

    /// Sets the reporter, once, before the first put. The store does not retain it.
    func report(to reporter: any MailboxStoreReporter)

    /// Stores a notification, which replaces the one in the slot; puts for one slot take effect in the order of the calls.
    ///
    /// Returns at once; the reporter hears when the put is durable, has failed, or has an unknown outcome. The journal lines
    /// `stored` and, for the replaced one, `replaced` become durable with it; with `isNew` also the line `received`, even if
    /// the put fails.
    func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool)

    /// Removes the notification with this sequence, if the slot still holds it, and writes `event` to the journal.
    ///
    /// Returns at once; from then on ``read(_:_:)`` does not find it. Both reach the disk in one transaction soon after. If
    /// the process dies before, the notification is delivered again. The line is written even if a newer notification took
    /// the slot, because it tells what the device did.
    func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?)

    /// Reads the notifications of slots, expired or not, in the order of the puts; includes every put reported before.
    ///
    /// In a cluster also every put of another node that was reported there before this node claimed the device.
    /// Returns at once, and may be called under a lock. `done` is called once, later, from a thread of the store, and
    /// returns at once; with an error if the store cannot be read.
    func read(
        _ slots: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    )

    /// Removes up to `limit` expired notifications, each with a line in the journal.
    /// - Returns: The number removed; there may be more if it is `limit`. Always 0 from an engine that expires by itself.
    /// - Throws: If the store cannot be written.
    func removeExpired(at moment: WallTime, limit: Int) async throws -> Int

    /// The number of stored notifications; approximate in a cluster.
    var count: Int { get }
}

extension MailboxStore {
    package func isAccepting(for device: DeviceNumber) -> Bool { isAccepting }

    package var isOverloaded: Bool { false }

    /// Stores a notification whose line `received` is recorded already.
    package func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?) {
        put(envelope, reason: reason, tag: tag, isNew: false)
    }

    /// ``read(_:_:)`` as an async call.
    /// - Throws: If the store cannot be read.
    package func waiting(in slots: [RegisteredSlot]) async throws -> [StoredNotification] {
        try await withCheckedThrowingContinuation { continuation in
            read(slots) { continuation.resume(with: $0) }
        }
    }
}

/// Receives the reports of puts; called from a thread of the store, once for a batch.
package protocol MailboxStoreReporter: AnyObject, Sendable {
    /// These puts survive `kill -9` and loss of power, in this order.
    func stored(_ puts: [StoredPut])
    /// These puts did not happen, and nothing of them is kept.
    func failed(_ envelopes: [Envelope])
    /// Nobody knows the outcome of these puts: each happened, or may happen later, or will not.
    ///
    /// Only an engine with ``PostOfficeConfiguration/storesFirst`` reports it: the notifications are on their way to no device. Their
    /// providers get no answer.
    func unknown(_ envelopes: [Envelope])
}

/// A slot and one generation of its registration.
package struct RegisteredSlot: Hashable, Sendable {
    package let slot: Slot
    package let generation: UInt32

    package init(_ slot: Slot, generation: UInt32) {
        self.slot = slot
        self.generation = generation
    }
}

/// A put that is durable.
package struct StoredPut: Sendable {
    package let envelope: Envelope
    package let sequence: UInt64
    package let tag: PutTag?
    /// Whether something later in the same commit took its place or took it away already; it is on record as stored.
    ///
    /// It is accepted, and no longer there: a device that was not sent it before is not sent it now.
    package let isReplaced: Bool

    package init(envelope: Envelope, sequence: UInt64, tag: PutTag?, isReplaced: Bool = false) {
        self.envelope = envelope
        self.sequence = sequence
        self.tag = tag
        self.isReplaced = isReplaced
    }
}

/// Which connection a put belongs to, and which delivery, where the notification is on its way to the device already.
package struct PutTag: Hashable, Sendable {
    package let fence: UInt64
    /// nil for one that is stored before it is sent.
    package let delivery: DeliveryNumber?

    package init(fence: UInt64, delivery: DeliveryNumber?) {
        self.fence = fence
        self.delivery = delivery
    }
}

/// A notification as the store keeps it.
package struct StoredNotification: Sendable {
    package let notification: Notification
    /// The generation of the registration that it was posted to.
    package let generation: UInt32
    /// Grows with every put; names this very notification in ``MailboxStore/remove(_:sequence:event:)``.
    package let sequence: UInt64

    package init(notification: Notification, generation: UInt32, sequence: UInt64) {
        self.notification = notification
        self.generation = generation
        self.sequence = sequence
    }

    init(_ put: StoredPut) {
        let envelope = put.envelope
        self.init(notification: envelope.notification, generation: envelope.generation, sequence: put.sequence)
    }

    var envelope: Envelope { Envelope(notification, generation: generation) }
}

/// Why a notification was stored instead of being delivered at once.
package enum StoreReason: UInt8, Hashable, Sendable, CaseIterable {
    /// The device was away.
    case deviceOffline = 0
    /// The device saves power and the notification's priority lets it wait.
    case power = 1
    /// It was sent to the device, which has not acknowledged it yet.
    case unacknowledged = 2
    /// The device has more unacknowledged notifications than it may, or an earlier one still waits.
    case backlog = 3
    /// The app has had as many background notifications on the device as it may for now.
    case budget = 4
    /// In a cluster every notification is stored before it is sent.
    case beforeDelivery = 5
    /// The connected device has not presented the app's token, which the service requires.
    case tokenMissing = 6
    /// The connected device has not subscribed to the app's notifications.
    case notSubscribed = 7
}
