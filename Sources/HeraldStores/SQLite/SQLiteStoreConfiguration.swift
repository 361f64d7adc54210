/// The limits of the SQLite store.
package struct SQLiteStoreConfiguration: Sendable {
    // Commits.

    /// The most puts, removals and registrations in one commit.
    ///
    /// 512: past some hundred a commit costs no less for each, and all of them wait for it.
    package var changesPerCommit = 512
    /// The most journal lines in one commit that are about none of these.
    package var linesPerCommit = 8192
    /// How long after a commit the writer may wait for more puts, when many came with the one before.
    ///
    /// An idle writer commits at once.
    package var gatherWindow: Duration = .milliseconds(2)
    /// How many are always enough to commit.
    package var gatherLimit = 256
    /// How long journal lines and removals may wait for a commit if nobody waits for them.
    package var journalDelay: Duration = .milliseconds(50)

    // Limits.

    /// How many puts may wait for a commit before the store takes no more.
    package var backlogLimit = 20_000
    /// How many bytes of payload may wait for a commit before the store takes no more.
    package var backlogByteLimit = 64 << 20
    /// How many journal lines are kept in memory while the disk cannot be written; the oldest beyond are lost.
    package var retainedLines = 100_000
    /// The store takes no more while the disk has less free space than this, in bytes: SQLite itself fails later and
    /// harder, and what waits must still be delivered and forgotten.
    package var freeSpaceMark = 64 << 20
    /// How often the free space is looked at while the store is written.
    package var freeSpaceInterval: Duration = .seconds(1)
    /// How long after a failed write the next one is tried.
    package var retryInterval: Duration = .milliseconds(500)

    // Upkeep.

    /// How many expired notifications, or rows of the journal, are removed before others may commit.
    package var upkeepSlice = 128
    /// After how many pages in the write-ahead log they are copied into the database file, between two commits: a
    /// commit is held up by one such slice at most.
    package var checkpointPages = 250
    /// The same while nobody waits for a commit: such a slice is soon copied, should somebody come meanwhile.
    package var gapCheckpointPages = 125
    /// After how long without a commit the rest of the log is copied.
    package var checkpointIdle: Duration = .milliseconds(500)
    /// The write-ahead log's size, in pages of 4 KiB, past which readers are waited for so that it can start over.
    package var logPageLimit = 16_384
    /// How long they are waited for.
    package var readerPatience: Duration = .milliseconds(20)
    /// The largest database, in pages of 4 KiB, that is checked from end to end after an unclean stop; of a larger one
    /// only what is read at the start anyway (everything but payloads and journal) and the registry.
    package var fullCheckPages = 25_000

    // Memory.

    /// The writer's page cache, in bytes; a reader's is a quarter of it.
    ///
    /// 8 MiB: SQLite walks through all of it in every commit in which deletions have joined pages, and what the writer
    /// needs are the last pages of two tables and the upper levels of their trees.
    package var cacheBytes = 8 << 20
    /// How many connections read.
    package var readerCount = 2

    /// For benchmarks: every commit takes this much longer, as on a slower disk.
    package var commitDelay: Duration = .zero

    package init() {}
}
