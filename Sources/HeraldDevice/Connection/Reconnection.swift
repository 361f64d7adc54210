/// How often a device may connect.
public struct ReconnectionLimits: Hashable, Sendable {
    /// The pause after the first failure; twice as long after each further one.
    public var shortestPause: Duration = .seconds(1)
    /// The longest pause.
    public var longestPause: Duration = .seconds(120)
    /// A connection that lived as long as this has worked: the next pause is the shortest again.
    public var working: Duration = .seconds(30)
    /// Attempts in an hour, however good the reason for each.
    public var attemptsPerHour = 120
    /// Attempts that may be made at once, of those of the hour.
    public var burst = 30

    /// The default limits.
    public init() {}
}

/// Decides when to connect again.
///
/// Knows no clock: it is told the time. Two things hold it back: a pause that doubles with each connection that did not
/// live long, whether it was never made or was cut as soon as it stood; and a budget of attempts, which holds for those
/// too that skip the pause because the network came back.
struct Reconnection: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let limits: ReconnectionLimits
    private var backOff: BackOff
    private var budget: AttemptBudget

    init(_ limits: ReconnectionLimits, now: Instant) {
        self.limits = limits
        backOff = BackOff(shortest: min(limits.shortestPause, limits.longestPause), longest: limits.longestPause)
        budget = AttemptBudget(perHour: limits.attemptsPerHour, burst: limits.burst, now: now)
    }

    /// An attempt is made.
    mutating func attempt(at now: Instant) {
        budget.take(at: now)
    }

    /// The pause after a connection that ended, or was not made.
    /// - Parameters:
    ///   - advice: What the service said about coming back.
    ///   - lived: How long the device was let in; nil if it was not.
    ///   - now: When it ended.
    ///   - random: 0 to 1.
    /// - Returns: How long to wait.
    mutating func pause(
        after advice: DeviceSession.End.Advice,
        lived: Duration?,
        at now: Instant,
        random: Double
    ) -> Duration {
        if let lived, lived >= limits.working { backOff.reset() }
        if advice == .retryLater { backOff.yield() }
        return max(backOff.pause(random: random), budget.wait(at: now))
    }

    /// The pause when there is reason to hope: another network, or the same one again.
    mutating func hurriedPause(at now: Instant, random: Double) -> Duration {
        max(limits.shortestPause * min(max(random, 0), 1), budget.wait(at: now))
    }
}

/// A budget of attempts: so many at once, and so many in an hour.
struct AttemptBudget: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Time that buys one attempt.
    private let price: Duration
    private let burst: Int
    /// When the budget would be whole again if nothing more were taken.
    private var whole: Instant

    init(perHour: Int, burst: Int, now: Instant) {
        price = .seconds(3600) / max(1, perHour)
        self.burst = max(1, burst)
        whole = now
    }

    mutating func take(at now: Instant) {
        whole = max(whole, now) + price
    }

    /// How long until the next attempt may be made.
    func wait(at now: Instant) -> Duration {
        max(.zero, (whole - now) - price * (burst - 1))
    }
}
