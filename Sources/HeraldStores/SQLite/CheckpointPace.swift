/// When the write-ahead log is copied into the database file: in slices small enough to stand between two commits,
/// instead of the long stall that SQLite's automatic checkpoint puts inside one.
///
/// In a gap, when nobody waits for a commit, a small slice is worth copying; without gaps a larger one is, since each
/// costs two syncs whatever its size, and whoever comes meanwhile waits for it.
struct CheckpointPace {
    /// How much the writer has to do otherwise.
    enum Moment {
        /// Somebody waits for a commit.
        case busy
        /// Nobody does, but may any moment.
        case gap
        /// Nobody has for a while.
        case quiet
    }

    /// SQLite's ways to copy the log.
    enum Mode: Hashable {
        /// As far as readers allow, without waiting for them.
        case passive
        /// Waiting for readers, so that the log starts over.
        case restart
    }

    private let slice: Int
    private let gapSlice: Int
    private let logLimit: Int
    private let idle: Duration
    /// How many pages the log holds, and how many of them are in the database file too.
    private var pagesInLog = 0
    private var copied = 0
    /// How many pages the log held at the last attempt.
    private var triedAt = 0

    init(_ configuration: SQLiteStoreConfiguration) {
        slice = max(1, configuration.checkpointPages)
        gapSlice = min(slice, max(1, configuration.gapCheckpointPages))
        logLimit = max(slice, configuration.logPageLimit)
        idle = configuration.checkpointIdle
    }

    /// Whether to copy now, and how.
    func due(_ moment: Moment) -> Mode? {
        let isOverfull = pagesInLog >= logLimit
        let wanted =
            switch moment {
            // Waiting for readers is dear, and no use to try again soon if they did not end.
            case .busy where isOverfull, .gap where isOverfull: max(slice, logLimit / 16)
            case .busy: slice
            case .gap: gapSlice
            case .quiet: 1
            }
        guard pagesInLog - max(copied, triedAt) >= wanted else { return nil }
        return isOverfull ? .restart : .passive
    }

    /// From when on the rest may be copied; nil if there is no rest.
    func idleMoment(lastCommit: Duration?) -> Duration? {
        due(.quiet) == nil ? nil : (lastCommit ?? .zero) + idle
    }

    /// A commit left the log with so many pages; fewer than before if it started over.
    mutating func committed(pagesInLog: Int) {
        if pagesInLog < self.pagesInLog {
            copied = 0
            triedAt = 0
        }
        self.pagesInLog = pagesInLog
    }

    /// An attempt ended; nil if it failed.
    mutating func checkpointed(_ result: (pagesInLog: Int, copied: Int)?) {
        triedAt = pagesInLog
        if let result {
            pagesInLog = max(result.pagesInLog, 0)
            copied = max(result.copied, 0)
            triedAt = pagesInLog
        }
    }
}
