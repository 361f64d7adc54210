/// Decides when to copy the write-ahead log into the database file: in small slices between two commits.
///
/// SQLite's automatic checkpoint would stall one commit for long. Each slice costs two syncs whatever its size, and
/// requests that come meanwhile wait for it. So a small slice is copied in a gap between commits, and only a larger one
/// while callers wait.
struct CheckpointPolicy {
    /// The writer's load.
    enum Load {
        /// A caller waits for a commit.
        case busy
        /// No caller waits, but one may come at any moment.
        case gap
        /// No caller has waited for a while.
        case quiet
    }

    /// SQLite's checkpoint modes.
    enum Mode: Hashable {
        /// As far as readers allow, without waiting for them.
        case passive
        /// Waits for readers, so that the log starts over.
        case restart
    }

    private let slice: Int
    private let gapSlice: Int
    private let logLimit: Int
    private let idle: Duration
    /// Pages in the log, and how many of them are copied into the file.
    private var pagesInLog = 0
    private var copied = 0
    /// Pages in the log at the last attempt.
    private var triedAt = 0

    init(_ configuration: SQLiteStoreConfiguration) {
        slice = max(1, configuration.checkpointPages)
        gapSlice = min(slice, max(1, configuration.gapCheckpointPages))
        logLimit = max(slice, configuration.logPageLimit)
        idle = configuration.checkpointIdle
    }

    /// The checkpoint to run now; nil if none is due.
    func due(_ load: Load) -> Mode? {
        let isOverfull = pagesInLog >= logLimit
        let wanted =
            switch load {
            // Waiting for readers is expensive, and soon after a failed attempt it would fail again.
            case .busy where isOverfull, .gap where isOverfull: max(slice, logLimit / 16)
            case .busy: slice
            case .gap: gapSlice
            case .quiet: 1
            }
        guard pagesInLog - max(copied, triedAt) >= wanted else { return nil }
        return isOverfull ? .restart : .passive
    }

    /// The time at which the rest of the log may be copied; nil if there is no rest.
    func idleMoment(lastCommit: Duration?) -> Duration? {
        due(.quiet) == nil ? nil : (lastCommit ?? .zero) + idle
    }

    /// Records the log's size after a commit; it is smaller than before if the log started over.
    mutating func committed(pagesInLog: Int) {
        if pagesInLog < self.pagesInLog {
            copied = 0
            triedAt = 0
        }
        self.pagesInLog = pagesInLog
    }

    /// Records the result of an attempt; nil if it failed.
    mutating func checkpointed(_ result: (pagesInLog: Int, copied: Int)?) {
        triedAt = pagesInLog
        if let result {
            pagesInLog = max(result.pagesInLog, 0)
            copied = max(result.copied, 0)
            triedAt = pagesInLog
        }
    }
}
