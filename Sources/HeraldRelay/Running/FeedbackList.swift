import HeraldProvider
import Synchronization

/// What a feedback service told, as far as it was read.
final class FeedbackList: Sendable {
    private let entries = Mutex<[FeedbackEntry]>([])

    var all: [FeedbackEntry] { entries.withLock { $0 } }

    func add(_ entry: FeedbackEntry) { entries.withLock { $0.append(entry) } }
}
