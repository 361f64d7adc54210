package import HeraldModel

/// What a store does for the mailbox: it keeps at most one notification per slot, the newest put.
///
/// The contract is narrow enough for a table in one file and for a stream of a cluster with one message per subject:
/// puts are asynchronous and answered in batches, a removal names the sequence that it means and does nothing if a newer
/// notification took the slot, and nothing is ever asked that needs a scan. Every engine passes the same conformance
/// suite (`StoreConformance` in the test support).
package protocol MailboxStore: Sendable {
    /// Whether the store can take more: false while it is overloaded, its disk is full, or it has failed.
    ///
    /// Read before a notification is accepted; cheap, and may be a moment out of date.
    var isAccepting: Bool { get }

    /// Says who is to hear of puts; once, before the first put. The store does not keep the reporter alive.
    func report(to reporter: any MailboxStoreReporter)

    /// Keeps a notification, in place of what the slot holds; puts for one slot take effect in the order of the calls.
    ///
    /// Returns at once. The reporter is told when the put is durable (or has failed). The journal's lines `stored` and,
    /// for what it replaced, `replaced`, become durable with it; with `isNew` also the line `received`, which is kept
    /// even if the put fails.
    func put(_ letter: Letter, reason: StoreReason, tag: PutTag?, isNew: Bool)

    /// Forgets the notification with this sequence, if the slot still holds it, and writes `event` to the journal.
    ///
    /// Returns at once, and ``read(_:_:)`` does not find the notification any more; done on disk soon, with the line
    /// in the same transaction, and lost only if the process dies first (then the notification is delivered again).
    /// The line is written even if a newer notification took the slot: it tells what the device did.
    func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?)

    /// Reads what waits in these slots, expired or not, in the order in which it was put; includes every put that was
    /// reported before the call.
    ///
    /// Returns at once, and may be called under a lock. `done` is called once, later, from a thread of the store, and
    /// returns at once as well; with an error if the store cannot be read.
    func read(_ slots: [Slot], _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void)

    /// Forgets up to `limit` notifications whose time was over at `moment`, each with a line in the journal.
    /// - Returns: How many; `limit` means that there may be more.
    /// - Throws: If the store cannot be written.
    func removeExpired(at moment: WallTime, limit: Int) async throws -> Int

    /// How many notifications wait.
    var count: Int { get }
}

extension MailboxStore {
    /// Keeps a notification whose line `received` is on record already.
    package func put(_ letter: Letter, reason: StoreReason, tag: PutTag?) {
        put(letter, reason: reason, tag: tag, isNew: false)
    }

    /// ``read(_:_:)`` for those who can wait.
    /// - Throws: If the store cannot be read.
    package func waiting(in slots: [Slot]) async throws -> [StoredNotification] {
        try await withCheckedThrowingContinuation { continuation in
            read(slots) { continuation.resume(with: $0) }
        }
    }
}

/// Who hears of puts; called from a thread of the store, once for a batch.
package protocol MailboxStoreReporter: AnyObject, Sendable {
    /// These puts survive `kill -9` and loss of power, in this order.
    func stored(_ puts: [StoredPut])
    /// These puts did not happen, and nothing of them is kept.
    func failed(_ letters: [Letter])
}

/// A put that is durable.
package struct StoredPut: Sendable {
    package let letter: Letter
    package let sequence: UInt64
    package let tag: PutTag?
    /// Whether something later in the same commit took its place or took it away already; it is on record as stored.
    ///
    /// It is accepted, and no longer there: a device that was not sent it before is not sent it now.
    package let isReplaced: Bool

    package init(letter: Letter, sequence: UInt64, tag: PutTag?, isReplaced: Bool = false) {
        self.letter = letter
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
    /// Grows with every put; names this very notification in ``MailboxStore/remove(_:sequence:event:)``.
    package let sequence: UInt64

    package init(notification: Notification, sequence: UInt64) {
        self.notification = notification
        self.sequence = sequence
    }
}

/// Why a notification was stored instead of being delivered at once.
package enum StoreReason: UInt8, Hashable, Sendable, CaseIterable {
    /// The device was away, or did not subscribe to the topic on this connection.
    case deviceOffline = 0
    /// The device saves power and the notification's priority lets it wait.
    case power = 1
    /// It was sent to the device, which has not acknowledged it yet.
    case unacknowledged = 2
    /// The device has more unacknowledged notifications than it may, or an earlier one still waits.
    case backlog = 3
    /// The app has had as many background notifications on the device as it may for now.
    case budget = 4
}
