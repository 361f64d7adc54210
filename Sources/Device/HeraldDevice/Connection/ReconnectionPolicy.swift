import HeraldModel

/// Limits on how often a device connects.
public struct ReconnectionLimits: Hashable, Sendable {
    /// The pause after the first failure; doubled after each further one.
    public var shortestPause: Duration = .seconds(1)
    /// The longest pause.
    public var longestPause: Duration = .seconds(120)
    /// A connection that lasted this long counts as a success: the next pause is the shortest again.
    public var working: Duration = .seconds(30)
    /// The most attempts in an hour.
    public var attemptsPerHour = 120
    /// The most attempts at once, out of those of the hour.
    public var burst = 30

    /// The default limits.
    public init() {}
}

/// Decides when to reconnect.
///
/// Knows no clock: callers pass the time. Two limits apply: an exponential backoff after each connection that failed or
/// did not last, and a rate limiter for attempts, which also holds for attempts after a network change.
///
/// A connection that was taken over has a backoff of its own. The service may have been late, and then the first pause is
/// enough. Two clients with one certificate replace each other: each connection lasts as long as the other client's pause,
/// so only one that lasts longer than any pause ends the growth.
struct ReconnectionPolicy: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limits: ReconnectionLimits
    private var backOff: BackOff
    private var takeovers: BackOff
    private var budget: AttemptBudget

    init(_ limits: ReconnectionLimits, now: Instant) {
        self.limits = limits
        backOff = BackOff(shortest: min(limits.shortestPause, limits.longestPause), longest: limits.longestPause)
        takeovers = backOff
        budget = AttemptBudget(perHour: limits.attemptsPerHour, burst: limits.burst, now: now)
    }

    mutating func attempt(at now: Instant) {
        budget.take(at: now)
    }

    /// The pause after a connection that ended or failed.
    mutating func pause(
        after advice: DeviceSession.End.Advice,
        lived: Duration?,
        at now: Instant,
        random: Double
    ) -> Duration {
        if let lived, lived >= limits.working { backOff.reset() }
        if let lived, lived > max(limits.longestPause, limits.working) * 2 { takeovers.reset() }
        if advice == .retryLater { backOff.yield() }
        let pause = advice == .takenOver ? takeovers.pause(random: random) : backOff.pause(random: random)
        return max(pause, budget.wait(at: now))
    }

    /// The pause after a network change.
    mutating func hurriedPause(at now: Instant, random: Double) -> Duration {
        max(limits.shortestPause * min(max(random, 0), 1), budget.wait(at: now))
    }
}

/// Rate limiter for attempts: a burst, and a rate per hour.
struct AttemptBudget: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limit: RateLimit
    private let start: Instant
    private var spentUntil = Int64.min

    init(perHour: Int, burst: Int, now: Instant) {
        limit = RateLimit(burst: burst, interval: .seconds(3600) / max(1, perHour))
        start = now
    }

    mutating func take(at now: Instant) {
        spentUntil = limit.used(spentUntil, at: microseconds(now))
    }

    /// The time until the next attempt is allowed.
    func wait(at now: Instant) -> Duration {
        .microseconds(limit.wait(spentUntil, at: microseconds(now)))
    }

    private func microseconds(_ now: Instant) -> Int64 {
        (now - start).wholeMilliseconds * 1000
    }
}

/// Exponential backoff with jitter.
struct BackOff: Hashable, Sendable {
    let shortest: Duration
    let longest: Duration
    private var bound: Duration

    init(shortest: Duration = .seconds(1), longest: Duration = .seconds(120)) {
        self.shortest = shortest
        self.longest = longest
        bound = shortest
    }

    /// The pause after a failure: between half of the bound and the whole, as `random` goes from 0 to 1.
    mutating func pause(random: Double) -> Duration {
        let pause = bound * (0.5 + 0.5 * min(max(random, 0), 1))
        bound = min(bound * 2, longest)
        return pause
    }

    /// Makes the next pause the longest, because the service asked for it.
    mutating func yield() {
        bound = longest
    }

    /// Starts again, after a connection that worked.
    mutating func reset() {
        bound = shortest
    }
}
