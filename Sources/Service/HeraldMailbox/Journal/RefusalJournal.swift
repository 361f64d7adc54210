import CoreMetrics
import HeraldModel
import Synchronization

/// Writes a line for each refused request, up to a rate: a flood must not fill the journal.
///
/// Refused requests beyond the rate are counted, as are those while the store cannot take their lines.
final class RefusalJournal: Sendable {
    private let store: any JournalStore
    private let limit: RateLimit
    private let wholeBurst = Mutex(Int64.min)
    private let dropped = Counter(label: MetricName.journalRefusalsDropped)

    init(store: any JournalStore, burst: Int, perSecond: Int) {
        self.store = store
        limit = RateLimit(burst: burst, interval: .seconds(1) / max(1, perSecond))
    }

    /// Writes a line, which is made only if it is written.
    func record(at now: WallTime, _ line: () -> JournalEvent) {
        let isWithinLimit = wholeBurst.withLock { kept in
            guard limit.wait(kept, at: now.microseconds) == 0 else { return false }
            kept = limit.used(kept, at: now.microseconds)
            return true
        }
        guard isWithinLimit, store.recordRefusal(line()) else { return dropped.increment() }
    }
}
