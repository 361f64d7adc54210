/// Decides when to test a connection, and when to give it up (MQTT 5 §3.1.2.10: a PINGREQ within each keep alive; no
/// answer within a reasonable time ends the connection).
///
/// Knows no clock: it is told the time, on a clock that goes on while the machine sleeps. A look at it that comes much too
/// late means that the machine or the process slept, and that the connection may have died meanwhile: it is tested at
/// once.
struct Pulse: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Verdict: Hashable, Sendable {
        case fine
        /// A PINGREQ is due.
        case ping
        /// The connection is dead, in words.
        case dead(String)
    }

    /// The longest time between two looks: how soon after waking a machine notices that it slept.
    static let look = Duration.seconds(5)
    /// A look that is later than this was slept over.
    static let lateness = Duration.seconds(5)

    /// Between two tests; nil if the service wants none.
    private let interval: Duration?
    /// How long a test may stay unanswered.
    private let answer: Duration
    private var lastPing: Instant
    private var lastLook: Instant
    /// When the test was sent that is not answered yet.
    private var asked: Instant?
    /// Whether nobody reads, because what was read is being handled.
    private var isBusy = false

    /// - Parameters:
    ///   - keepAlive: What was agreed with the service; zero for none.
    ///   - answerTimeout: How long a test may stay unanswered; shorter where the keep alive is.
    ///   - now: When the service let the device in.
    init(keepAlive: Duration, answerTimeout: Duration, now: Instant) {
        // Three quarters, so that a late timer is not a broken promise.
        interval = keepAlive > .zero ? max(keepAlive * 3 / 4, .milliseconds(500)) : nil
        answer = min(answerTimeout, interval ?? answerTimeout)
        lastPing = now
        lastLook = now
    }

    /// When to look next.
    var nextLook: Instant {
        var next = lastLook + Pulse.look
        if let asked {
            if !isBusy { next = min(next, asked + answer) }
        } else if let interval {
            next = min(next, lastPing + interval)
        }
        return next
    }

    /// Something came.
    mutating func heard() {
        asked = nil
    }

    /// Reading stops or goes on: what was not read could not be heard.
    mutating func setBusy(_ isBusy: Bool, at now: Instant) {
        self.isBusy = isBusy
        if asked != nil { asked = now }
    }

    /// The time has come, or something happened after which the connection may be dead.
    mutating func look(at now: Instant, isSuspect: Bool = false) -> Verdict {
        let hasSlept = now - lastLook > Pulse.look + Pulse.lateness
        lastLook = now
        // The answer may have come while nobody was awake to hear it.
        if hasSlept { return ping(at: now) }
        if let asked, !isBusy, now - asked >= answer { return .dead("the service fell silent") }
        guard asked == nil else { return .fine }
        let isDue = interval.map { now - lastPing >= $0 } ?? false
        return isDue || isSuspect ? ping(at: now) : .fine
    }

    private mutating func ping(at now: Instant) -> Verdict {
        lastPing = now
        asked = now
        return .ping
    }
}
