import HeraldMailbox
import Synchronization

/// Who hears of puts.
///
/// Weak: the one who hears owns the store, not the other way round.
final class ReporterSlot: Sendable {
    private struct Weak {
        weak var reporter: (any MailboxStoreReporter)?
    }

    private let slot = Mutex(Weak())

    var current: (any MailboxStoreReporter)? {
        get { slot.withLock { $0.reporter } }
        set { slot.withLock { $0.reporter = newValue } }
    }
}
