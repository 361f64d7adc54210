/// Decides what the writer does next: a value without clock or database.
///
/// Times are measured from the writer's start.
///
/// In order of importance: an overfull log is copied before anything else, since it only grows; then come those who
/// wait; then a log that has grown by a little, while nobody does; then journal lines and removals that have waited long enough; then, in quiet times, the rest of the log.
struct WriterSchedule {
    /// How the store can write.
    enum Health: Hashable {
        case well
        /// It can, but space is short: what is there is delivered and forgotten, and nothing new comes.
        case lowOnSpace
        /// The last write failed.
        case stalled
        /// Never again.
        case failed
    }

    /// What the decision rests on.
    struct Facts {
        var now: Duration
        /// How many orders somebody waits for.
        var urgent: Int
        /// Whether anything at all is to be written.
        var hasWork: Bool
        var isClosing: Bool
    }

    /// What to do.
    enum Step: Hashable {
        case commit
        case checkpoint(CheckpointPace.Mode)
        /// Try whether the disk can be written again, and has room.
        case probe
        /// Tell those who wait that nothing can be written.
        case refuse
        /// Wait for so many urgent orders, for any order if `any`, or until a moment.
        case sleep(until: Duration?, urgent: Int, any: Bool)
        case finish
    }

    private let gatherWindow: Duration
    private let gatherLimit: Int
    private let journalDelay: Duration
    private let retryInterval: Duration

    private(set) var health = Health.well
    private(set) var checkpoints: CheckpointPace
    /// Since when something waits that nobody waits for.
    private var waitingSince: Duration?
    private var lastCommit: Duration?
    /// How many waited for the last commit.
    private var lastUrgent = 0
    private var probeAt = Duration.zero

    init(_ configuration: SQLiteStoreConfiguration) {
        gatherWindow = configuration.gatherWindow
        gatherLimit = configuration.gatherLimit
        journalDelay = configuration.journalDelay
        retryInterval = configuration.retryInterval
        checkpoints = CheckpointPace(configuration)
    }

    mutating func next(_ facts: Facts) -> Step {
        if !facts.hasWork {
            waitingSince = nil
        } else if waitingSince == nil {
            waitingSince = facts.now
        }
        switch health {
        case .failed, .stalled:
            return nextWhileUnable(facts)
        case .lowOnSpace where facts.now >= probeAt && !facts.isClosing:
            return .probe
        case .lowOnSpace, .well:
            break
        }
        if let mode = checkpoints.due(facts.urgent > 0 ? .busy : .gap) { return .checkpoint(mode) }
        if facts.urgent > 0 { return nextForUrgent(facts) }
        if facts.isClosing { return facts.hasWork ? .commit : .finish }
        return nextInQuiet(facts)
    }

    private func nextWhileUnable(_ facts: Facts) -> Step {
        if health == .failed {
            if facts.hasWork { return .refuse }
            return facts.isClosing ? .finish : .sleep(until: nil, urgent: 1, any: true)
        }
        // First the probe: those who wait are worth it, and they may never stop coming.
        if facts.now >= probeAt, !facts.isClosing { return .probe }
        if facts.urgent > 0 { return .refuse }
        return facts.isClosing ? .finish : .sleep(until: probeAt, urgent: 1, any: false)
    }

    /// Many came with the last commit: more are on their way, and worth a moment.
    private func nextForUrgent(_ facts: Facts) -> Step {
        let wanted = min(gatherLimit, lastUrgent / 2)
        guard let lastCommit, facts.urgent < wanted, !facts.isClosing, facts.now < lastCommit + gatherWindow else {
            return .commit
        }
        return .sleep(until: lastCommit + gatherWindow, urgent: wanted, any: false)
    }

    private func nextInQuiet(_ facts: Facts) -> Step {
        var wakeAt: Duration?
        if let waitingSince {
            guard facts.now < waitingSince + journalDelay else { return .commit }
            wakeAt = waitingSince + journalDelay
        }
        if let idleAt = checkpoints.idleMoment(lastCommit: lastCommit) {
            if facts.now >= idleAt, let mode = checkpoints.due(.quiet) { return .checkpoint(mode) }
            wakeAt = min(wakeAt ?? idleAt, idleAt)
        }
        if health == .lowOnSpace { wakeAt = min(wakeAt ?? probeAt, probeAt) }
        return .sleep(until: wakeAt, urgent: 1, any: waitingSince == nil)
    }

    // What the writer tells.

    /// A commit ended well.
    mutating func committed(urgent: Int, pagesInLog: Int, now: Duration) {
        lastCommit = now
        lastUrgent = urgent
        waitingSince = nil
        checkpoints.committed(pagesInLog: pagesInLog)
    }

    /// A probe was written.
    mutating func probed(pagesInLog: Int) {
        checkpoints.committed(pagesInLog: pagesInLog)
    }

    /// A checkpoint ended, well or not.
    mutating func checkpointed(_ result: (pagesInLog: Int, copied: Int)?) {
        checkpoints.checkpointed(result)
    }

    /// A write failed, or space is short, or all is well again.
    mutating func became(_ health: Health, now: Duration) {
        self.health = health
        probeAt = now + retryInterval
    }
}
