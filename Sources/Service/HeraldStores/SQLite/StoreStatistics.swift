import Synchronization

/// Counts of the store's work since its start.
package struct StoreStatistics: Hashable, Sendable {
    /// Successful commits.
    package var commits = 0
    /// Puts, removals and registrations in them.
    package var changes = 0
    /// The most changes in one commit.
    package var largestCommit = 0
    package var checkpoints = 0
    /// The longest checkpoint, which is the longest time that one delayed a commit.
    package var longestCheckpoint: Duration = .zero
    /// Total duration of all checkpoints.
    package var checkpointTime: Duration = .zero
}

/// The statistics, shared under a lock.
final class StatisticsCounters: Sendable {
    private let statistics = Mutex(StoreStatistics())

    var current: StoreStatistics { statistics.withLock { $0 } }

    func committed(changes: Int) {
        statistics.withLock { statistics in
            statistics.commits += 1
            statistics.changes += changes
            statistics.largestCommit = max(statistics.largestCommit, changes)
        }
    }

    func checkpointed(in duration: Duration) {
        statistics.withLock { statistics in
            statistics.checkpoints += 1
            statistics.checkpointTime += duration
            statistics.longestCheckpoint = max(statistics.longestCheckpoint, duration)
        }
    }
}
