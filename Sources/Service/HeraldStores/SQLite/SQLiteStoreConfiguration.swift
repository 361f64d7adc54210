/// Limits and intervals of the SQLite store.
package struct SQLiteStoreConfiguration: Sendable {
    // MARK: - Commits

    /// The most puts, removals and registrations in one commit.
    ///
    /// 512: beyond some hundred, the cost of each change stays the same, and all of them wait for the commit.
    package var changesPerCommit = 512
    /// The most journal events in one commit; a commit stops taking requests there.
    package var eventsPerCommit = 8192
    /// Time after a commit that the writer may wait for more puts, if the last commit had many.
    ///
    /// An idle writer commits at once.
    package var gatherWindow: Duration = .milliseconds(2)
    /// The fewest puts in the last commit for which the writer waits.
    ///
    /// 32: a commit of fewer ends sooner than the wait.
    package var gatherMinimum = 32
    /// The number of puts for which the writer never waits longer.
    package var gatherLimit = 256
    /// Delay of journal events and removals that no caller waits for.
    package var journalDelay: Duration = .milliseconds(50)

    /// Interval at which counts of journal lines are written, in a commit that is made anyway.
    package var tallyInterval: Duration = .seconds(60)

    // MARK: - Limits

    /// The most puts that may wait for a commit; beyond it the store refuses puts.
    package var backlogLimit = 20_000
    /// The most bytes of payload that may wait for a commit; beyond it the store refuses puts.
    package var backlogByteLimit = 64 << 20
    /// Journal events kept in memory while the disk cannot be written; the oldest beyond them are lost.
    package var retainedEvents = 100_000
    /// Free space on the disk, in bytes, below which the store refuses puts.
    ///
    /// On a full disk SQLite would fail, and stored notifications could not be removed after their delivery.
    package var minimumFreeSpace = 64 << 20
    /// Interval between checks of the free space while the store is written.
    package var freeSpaceInterval: Duration = .seconds(1)
    /// Delay between a failed write and the next attempt.
    package var retryInterval: Duration = .milliseconds(500)

    // MARK: - Maintenance

    /// The most expired notifications, or journal rows, that one commit removes.
    package var maintenanceSlice = 128
    /// Pages in the write-ahead log that cause a checkpoint between two commits.
    ///
    /// One such slice delays a commit at most.
    package var checkpointPages = 250
    /// The same while no caller waits for a commit: a smaller slice, because a caller may come meanwhile.
    package var gapCheckpointPages = 125
    /// Time without a commit after which the rest of the log is copied.
    package var checkpointIdle: Duration = .milliseconds(500)
    /// Size of the write-ahead log, in pages of 4 KiB, from which checkpoints wait for readers, so that it can start over.
    package var logPageLimit = 16_384
    /// The longest wait for readers.
    package var readerTimeout: Duration = .milliseconds(20)
    /// The largest database, in pages of 4 KiB, that is checked completely after an unclean stop.
    ///
    /// Of a larger one, only the small tables are checked, and the start reads the mailbox's headers.
    package var fullCheckPages = 25_000

    // MARK: - Memory

    /// The writer's page cache, in bytes; a reader's is a quarter of it.
    ///
    /// 8 MiB: SQLite scans the whole cache in every commit in which deletions have merged pages. The writer needs only the
    /// last pages of two tables and the upper levels of their trees.
    package var cacheBytes = 8 << 20
    /// Connections that read.
    package var readerCount = 2

    /// Extra duration of every commit, for benchmarks of a slower disk.
    package var commitDelay: Duration = .zero

    package init() {}
}
