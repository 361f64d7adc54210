package import HeraldModel
import Synchronization

/// A notification in the post office's hands, with the provider's request that waits for word of it.
///
/// A class, so that gateway, store and courier pass one reference along instead of copying it.
package final class Letter: Sendable {
    package let notification: Notification
    /// Who is told that the notification is safe; nil if nobody waits (a notification read back from the store).
    package let receipt: Receipt?
    /// What became of it, as far as it is decided: a ``JournalState`` in the highest byte, a moment below it.
    private let decided = Atomic<UInt64>(0)
    /// Where its memory is counted, retained; nil until somebody holds it for longer than a call.
    ///
    /// `AtomicLazyReference` would look for its own type at run time, twice for each letter.
    private let account = Atomic<Unmanaged<LetterLoad>?>(nil)

    package init(_ notification: Notification, receipt: Receipt? = nil) {
        self.notification = notification
        self.receipt = receipt
    }

    deinit {
        guard let load = account.load(ordering: .acquiring) else { return }
        load.takeUnretainedValue().remove(payloadBytes: notification.payload.count)
        load.release()
    }

    /// What became of it, as far as it is decided, for a provider that asks why; nil while nothing is.
    package var fate: Fate? {
        let word = decided.load(ordering: .relaxed)
        guard let state = JournalState(rawValue: UInt8(word >> 56)) else { return nil }
        let moment = Int64(word & 0xFF_FFFF_FFFF_FFFF)
        return Fate(state: state, next: moment == 0 ? nil : WallTime(milliseconds: moment))
    }

    /// Notes what becomes of it; under the lock of its desk.
    func note(_ state: JournalState, next: WallTime? = nil) {
        let moment = UInt64(clamping: next?.milliseconds ?? 0) & 0xFF_FFFF_FFFF_FFFF
        decided.store(UInt64(state.rawValue) << 56 | moment, ordering: .relaxed)
    }

    /// Counts its memory from now on until it is gone; once, under the lock of its desk.
    func count(in load: LetterLoad) {
        guard account.load(ordering: .relaxed) == nil else { return }
        load.add(payloadBytes: notification.payload.count)
        account.store(Unmanaged.passRetained(load), ordering: .releasing)
    }
}

/// What became of a notification, for a provider that asks why.
package struct Fate: Hashable, Sendable {
    package let state: JournalState
    /// When it is tried next, where that is known.
    package let next: WallTime?

    package init(state: JournalState, next: WallTime? = nil) {
        self.state = state
        self.next = next
    }
}

/// The right to one answer: settled exactly once, when the notification is acknowledged, stored, or cannot be stored.
package struct Receipt: Sendable {
    package let desk: any ReceiptDesk
    /// Means something to the desk only (a stream of a connection, say).
    package let number: UInt64

    package init(desk: any ReceiptDesk, number: UInt64) {
        self.desk = desk
        self.number = number
    }

    package func settle(_ outcome: ReceiptOutcome) {
        desk.settle(number, outcome)
    }
}

/// What a provider is told in the end.
package enum ReceiptOutcome: Hashable, Sendable {
    /// The notification is acknowledged by the device, stored, or was not to be stored and has been tried.
    case accepted
    /// It could not be stored.
    case refused(Rejection)
}

/// A door that waits for receipts.
///
/// Called from any thread, under a lock of the post office: it notes the outcome for its own event loop and returns at
/// once.
package protocol ReceiptDesk: AnyObject, Sendable {
    func settle(_ number: UInt64, _ outcome: ReceiptOutcome)
}
