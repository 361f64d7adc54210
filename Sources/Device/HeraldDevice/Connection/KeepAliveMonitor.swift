/// Decides when to test a connection, and when it is dead (MQTT 5 §3.1.2.10: a PINGREQ within each keep-alive interval; no
/// answer within a reasonable time ends the connection).
///
/// Knows no clock: callers pass the time of a clock that runs while the machine sleeps. A look that comes much too late
/// means that the machine or the process slept. The connection may be dead then, and is tested at once.
struct KeepAliveMonitor: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Verdict: Hashable, Sendable {
        case fine
        /// A PINGREQ is due.
        case ping
        /// The connection is dead, with the reason.
        case dead(String)
    }

    /// The longest time between two looks: a machine notices sleep that soon after it wakes.
    static let look = Duration.seconds(5)
    /// A look that is later than this means that the machine slept.
    static let lateness = Duration.seconds(5)

    /// The interval between two tests; nil if the service wants none.
    private let interval: Duration?
    /// Timeout of a test.
    private let answer: Duration
    private var lastPing: Instant
    private var lastLook: Instant
    /// The time of the unanswered test.
    private var asked: Instant?
    /// Whether nothing is read at the moment, because a notification is being handled.
    private var isBusy = false

    /// `keepAlive` is the interval that the service accepted, zero for none.
    init(keepAlive: Duration, answerTimeout: Duration, now: Instant) {
        // Three quarters, so that a late timer stays within the interval.
        interval = keepAlive > .zero ? max(keepAlive * 3 / 4, .milliseconds(500)) : nil
        answer = min(answerTimeout, interval ?? answerTimeout)
        lastPing = now
        lastLook = now
    }

    var nextLook: Instant {
        var next = lastLook + KeepAliveMonitor.look
        if let asked {
            if !isBusy { next = min(next, asked + answer) }
        } else if let interval {
            next = min(next, lastPing + interval)
        }
        return next
    }

    /// Bytes have arrived.
    mutating func heard() {
        asked = nil
    }

    /// Reading stops or goes on; while it stops, no answer can arrive.
    mutating func setBusy(_ isBusy: Bool, at now: Instant) {
        self.isBusy = isBusy
        if asked != nil { asked = now }
    }

    /// Looks at the connection: at ``nextLook``, or because it may be dead.
    mutating func look(at now: Instant, isSuspect: Bool = false) -> Verdict {
        let hasSlept = now - lastLook > KeepAliveMonitor.look + KeepAliveMonitor.lateness
        lastLook = now
        // The answer may have arrived during the sleep.
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
