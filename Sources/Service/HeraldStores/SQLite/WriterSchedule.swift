/// Decides the writer's next step: a value without clock or database.
///
/// Times are measured from the writer's start. The priorities are:
///
/// 1. An overfull log is checkpointed, because it only grows.
/// 2. Requests with waiting callers are committed.
/// 3. In a gap, a slice of the log is checkpointed.
/// 4. Journal events and removals are committed after a delay.
/// 5. In quiet times, the rest of the log is checkpointed.
struct WriterSchedule {
    /// Whether the store can write.
    enum Health: Hashable {
        case healthy
        /// Writes succeed, but the disk is nearly full: puts are refused, deliveries and removals go on.
        case lowOnSpace
        /// The last write failed.
        case stalled
        /// Writes have failed permanently.
        case failed
    }

    /// The input of a decision.
    struct Facts {
        var now: Duration
        /// Requests whose callers wait.
        var urgent: Int
        /// Whether there is any request.
        var hasWork: Bool
        var isClosing: Bool
    }

    /// The writer's next action.
    enum Step: Hashable {
        case commit
        case checkpoint(CheckpointPolicy.Mode)
        /// Test whether the disk can be written and has free space.
        case probe
        /// Answer all requests with a failure.
        case refuse
        /// Wait for this many urgent requests, for any request if `any`, or until a moment.
        case sleep(until: Duration?, urgent: Int, any: Bool)
        case finish
    }

    private let gatherWindow: Duration
    private let gatherMinimum: Int
    private let gatherLimit: Int
    private let journalDelay: Duration
    private let retryInterval: Duration

    private(set) var health = Health.healthy
    private(set) var checkpoints: CheckpointPolicy
    /// Since when a request without a waiting caller is pending.
    private var waitingSince: Duration?
    private var lastCommit: Duration?
    /// Urgent requests in the last commit.
    private var lastUrgent = 0
    private var probeAt = Duration.zero
    /// Whether a store that could not be written was tested once more after it began to close.
    private var isClosingProbed = false

    init(_ configuration: SQLiteStoreConfiguration) {
        gatherWindow = configuration.gatherWindow
        gatherMinimum = configuration.gatherMinimum
        gatherLimit = configuration.gatherLimit
        journalDelay = configuration.journalDelay
        retryInterval = configuration.retryInterval
        checkpoints = CheckpointPolicy(configuration)
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
        case .lowOnSpace, .healthy:
            break
        }
        if let mode = checkpoints.due(facts.urgent > 0 ? .busy : .gap) { return .checkpoint(mode) }
        if facts.urgent > 0 { return nextForUrgent(facts) }
        if facts.isClosing { return facts.hasWork ? .commit : .finish }
        return nextInQuiet(facts)
    }

    private mutating func nextWhileUnable(_ facts: Facts) -> Step {
        if health == .failed {
            if facts.hasWork { return .refuse }
            return facts.isClosing ? .finish : .sleep(until: nil, urgent: 1, any: true)
        }
        // The probe comes first, because urgent requests may never stop coming.
        if facts.now >= probeAt, !facts.isClosing { return .probe }
        if facts.urgent > 0 { return .refuse }
        guard facts.isClosing else { return .sleep(until: probeAt, urgent: 1, any: false) }
        // The disk gets one more chance: the end loses all that waits.
        guard facts.hasWork, !isClosingProbed else { return .finish }
        isClosingProbed = true
        return .probe
    }

    /// Waits a moment for three quarters of what the last commit had, if that was much.
    private func nextForUrgent(_ facts: Facts) -> Step {
        let wanted = min(gatherLimit, lastUrgent * 3 / 4)
        guard lastUrgent >= gatherMinimum, let lastCommit, facts.urgent < wanted, !facts.isClosing,
            facts.now < lastCommit + gatherWindow
        else { return .commit }
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

    // MARK: - Results

    /// Records a successful commit.
    mutating func committed(urgent: Int, pagesInLog: Int, now: Duration) {
        lastCommit = now
        lastUrgent = urgent
        waitingSince = nil
        checkpoints.committed(pagesInLog: pagesInLog)
    }

    /// Records a successful probe.
    mutating func probed(pagesInLog: Int) {
        checkpoints.committed(pagesInLog: pagesInLog)
    }

    /// Records the end of a checkpoint; nil if it failed.
    mutating func checkpointed(_ result: (pagesInLog: Int, copied: Int)?) {
        checkpoints.checkpointed(result)
    }

    /// Records a change of health, or that it was confirmed.
    mutating func became(_ health: Health, now: Duration) {
        self.health = health
        probeAt = now + retryInterval
    }
}
