/// When the write-ahead log is copied into the database file: in slices small enough to stand between two commits,
/// instead of the long stall that SQLite's automatic checkpoint puts inside one.
struct CheckpointPace {
    /// SQLite's ways to copy the log.
    enum Mode: Hashable {
        /// As far as readers allow, without waiting for them.
        case passive
        /// Waiting for readers, so that the log starts over.
        case restart
    }

    private let slice: Int
    private let logLimit: Int
    private let idle: Duration
    /// How many pages the log holds, and how many of them are in the database file too.
    private var pagesInLog = 0
    private var copied = 0
    /// How many pages the log held at the last attempt.
    private var triedAt = 0

    init(_ configuration: SQLiteStoreConfiguration) {
        slice = max(1, configuration.checkpointPages)
        logLimit = max(slice, configuration.logPageLimit)
        idle = configuration.checkpointIdle
    }

    /// Whether to copy now, and how.
    func due(isIdle: Bool) -> Mode? {
        guard pagesInLog - max(copied, triedAt) >= (isIdle ? 1 : slice) else { return nil }
        return pagesInLog >= logLimit ? .restart : .passive
    }

    /// From when on the rest may be copied; nil if there is no rest.
    func idleMoment(lastCommit: Duration?) -> Duration? {
        due(isIdle: true) == nil ? nil : (lastCommit ?? .zero) + idle
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
