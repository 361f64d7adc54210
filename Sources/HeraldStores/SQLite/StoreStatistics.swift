import Synchronization

/// What the store has done since its start.
package struct StoreStatistics: Hashable, Sendable {
    /// Commits that ended well.
    package var commits = 0
    /// Puts, removals and registrations in them.
    package var changes = 0
    /// The most of them in one commit.
    package var largestCommit = 0
    /// Checkpoints.
    package var checkpoints = 0
    /// The longest of them, which is also the longest that a commit had to wait for one.
    package var longestCheckpoint: Duration = .zero
    /// How long all of them took together.
    package var checkpointTime: Duration = .zero

    package init() {}
}

/// The statistics under a lock.
final class StatisticsBox: Sendable {
    private let box = Mutex(StoreStatistics())

    var current: StoreStatistics { box.withLock { $0 } }

    func committed(changes: Int) {
        box.withLock { statistics in
            statistics.commits += 1
            statistics.changes += changes
            statistics.largestCommit = max(statistics.largestCommit, changes)
        }
    }

    func checkpointed(in duration: Duration) {
        box.withLock { statistics in
            statistics.checkpoints += 1
            statistics.checkpointTime += duration
            statistics.longestCheckpoint = max(statistics.longestCheckpoint, duration)
        }
    }
}
