import HeraldMailbox
import Synchronization

/// The receiver of reports about puts.
///
/// The reference is weak, because the reporter owns the store.
final class WeakReporter: Sendable {
    private struct Weak {
        weak var reporter: (any MailboxStoreReporter)?
    }

    private let reference = Mutex(Weak())

    var current: (any MailboxStoreReporter)? {
        get { reference.withLock { $0.reporter } }
        set { reference.withLock { $0.reporter = newValue } }
    }
}
