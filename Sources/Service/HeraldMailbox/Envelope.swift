package import HeraldModel
import Synchronization

/// A notification inside the post office, with the provider's request that waits for its outcome.
///
/// A class: gateway, store and courier pass a reference instead of copying it.
package final class Envelope: Sendable {
    package let notification: Notification
    /// The right to answer the provider; nil for a notification that was read from the store.
    package let completion: Completion?
    /// The generation of the registration that it was posted to.
    package let generation: UInt32
    /// The ``status``: a ``JournalState`` in the highest byte, a moment below it.
    private let decided = Atomic<UInt64>(0)
    /// The memory account, retained; nil until the envelope is delivered or stored.
    ///
    /// `AtomicLazyReference` would look up its metadata at run time, twice for each envelope.
    private let account = Atomic<Unmanaged<EnvelopeMemory>?>(nil)

    package init(_ notification: Notification, generation: UInt32, completion: Completion? = nil) {
        self.notification = notification
        self.generation = generation
        self.completion = completion
    }

    deinit {
        guard let memory = account.load(ordering: .acquiring) else { return }
        memory.takeUnretainedValue().remove(payloadBytes: notification.payload.count)
        memory.release()
    }

    /// Answers the provider, if there is one.
    func settle(_ outcome: CompletionOutcome) { completion?.settle(outcome) }

    var registeredSlot: RegisteredSlot { RegisteredSlot(notification.slot, generation: generation) }

    /// The newest decision about the notification; nil before the first.
    package var status: NotificationStatus? {
        let word = decided.load(ordering: .relaxed)
        guard let state = JournalState(rawValue: UInt8(word >> 56)) else { return nil }
        let moment = Int64(word & 0xFF_FFFF_FFFF_FFFF)
        return NotificationStatus(state: state, next: moment == 0 ? nil : WallTime(milliseconds: moment))
    }

    /// Sets the status, under the lock of its shard.
    func note(_ state: JournalState, next: WallTime? = nil) {
        let moment = UInt64(clamping: next?.milliseconds ?? 0) & 0xFF_FFFF_FFFF_FFFF
        decided.store(UInt64(state.rawValue) << 56 | moment, ordering: .relaxed)
    }

    /// Counts its memory until it is released; only once, under the lock of its shard.
    func count(in memory: EnvelopeMemory) {
        guard account.load(ordering: .relaxed) == nil else { return }
        memory.add(payloadBytes: notification.payload.count)
        account.store(Unmanaged.passRetained(memory), ordering: .releasing)
    }
}

/// The status of a notification, for a provider that asks (`herald-explain`).
package struct NotificationStatus: Hashable, Sendable {
    package let state: JournalState
    /// The next try, where it is known.
    package var next: WallTime?
}

/// The right to one answer to a provider, settled exactly once.
package struct Completion: Sendable {
    package let handler: any CompletionHandler
    /// A number of the handler, such as a stream.
    package let number: UInt64

    package init(handler: any CompletionHandler, number: UInt64) {
        self.handler = handler
        self.number = number
    }

    package func settle(_ outcome: CompletionOutcome) {
        handler.settle(number, outcome)
    }
}

/// The outcome of a provider's request.
package enum CompletionOutcome: Hashable, Sendable {
    /// The notification is acknowledged, stored, or discarded on record.
    case accepted
    /// The notification could not be stored, or its token is not valid; with
    /// ``HeraldModel/RefusalReason/unregistered`` since when the app is removed.
    case refused(RefusalReason, since: WallTime? = nil)
    /// The listener had something that this node did not know, and that may be known now: it decides again.
    case decideAgain
    /// Nobody knows whether the notification was stored, or will be: the provider gets no answer.
    ///
    /// An HTTP/2 stream is reset. A binary connection is closed, because each error response says what was accepted.
    case unknown
}

/// A listener that waits for completions.
///
/// Called from any thread, under a lock of the post office: an implementation hands the outcome to its event loop and
/// returns at once.
package protocol CompletionHandler: AnyObject, Sendable {
    func settle(_ number: UInt64, _ outcome: CompletionOutcome)
}
