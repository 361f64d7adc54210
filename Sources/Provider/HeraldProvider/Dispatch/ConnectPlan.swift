import HeraldModel
import NIOCore
import Synchronization

/// Decides when a client opens another connection: the first on demand, more when streams run out, with backoff.
struct ConnectPlan {
    enum Step: Hashable {
        case nothing
        case connect
        /// Ask again at that time.
        case wait(until: NIODeadline)
    }

    let limits: ProviderConnectionLimits
    private var failures = 0
    private var notBefore = NIODeadline.uptimeNanoseconds(0)
    /// Since when requests wait without a free stream.
    private var shortSince: NIODeadline?

    init(limits: ProviderConnectionLimits) {
        self.limits = limits
    }

    /// Decides whether to open another connection.
    ///
    /// `isShort`: requests wait without a free stream. `usable` connections take requests, `opening` ones do not yet.
    mutating func step(isShort: Bool, usable: Int, opening: Int, now: NIODeadline) -> Step {
        guard isShort else {
            shortSince = nil
            return .nothing
        }
        let since = shortSince ?? now
        shortSince = since
        guard opening == 0, usable < limits.maximum else { return .nothing }
        let due = usable == 0 ? notBefore : max(notBefore, since + TimeAmount(limits.growAfter))
        guard due <= now else { return .wait(until: due) }
        shortSince = now
        return .connect
    }

    /// Notes a failed connect, or a connection that ended before its first answer.
    ///
    /// `chance`, 0 to 1, is the random jitter of the pause.
    mutating func failed(now: NIODeadline, chance: Double) {
        let pause = Pause.length(limits.firstPause, limits.longestPause, after: failures, chance: chance)
        notBefore = now + TimeAmount(pause)
        failures += 1
    }

    /// Notes that a connection answered a request.
    mutating func succeeded() {
        failures = 0
    }

    /// Postpones the next connect: the process has used up its budget.
    mutating func postpone(until moment: NIODeadline) {
        notBefore = max(notBefore, moment)
    }
}

/// Exponential backoff.
enum Pause {
    /// A pause that doubles with each attempt.
    ///
    /// Random jitter shortens it by up to half, so that clients that failed together do not return together.
    static func length(_ first: Duration, _ longest: Duration, after attempts: Int, chance: Double) -> Duration {
        let whole = min(longest, first * Double(1 << min(attempts, 30)))
        return whole * (0.5 + 0.5 * min(max(chance, 0), 1))
    }
}

/// Limits the connects of the whole process, so that a bad network does not cause thousands.
struct ConnectBudget {
    static let burst = 256
    private static let limit = RateLimit(burst: burst, interval: .milliseconds(100))

    private var spentUntil = Int64.min

    /// Takes one connect from the budget.
    /// - Returns: When to ask again; nil if the client may connect now.
    mutating func take(now: NIODeadline) -> NIODeadline? {
        let microseconds = Int64(now.uptimeNanoseconds / 1000)
        let wait = Self.limit.wait(spentUntil, at: microseconds)
        guard wait == 0 else { return now + .microseconds(wait) }
        spentUntil = Self.limit.used(spentUntil, at: microseconds)
        return nil
    }

    /// The budget of the process.
    static let shared = Mutex(ConnectBudget())
}
