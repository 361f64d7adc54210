import NIOCore
import Synchronization

/// When a client opens a connection: one to begin with, more when streams are short, none too often.
struct ConnectPlan {
    enum Step: Hashable {
        case nothing
        case connect
        /// Ask again then.
        case wait(until: NIODeadline)
    }

    let limits: ProviderConnectionLimits
    private var failures = 0
    private var notBefore = NIODeadline.uptimeNanoseconds(0)
    /// Since when requests wait and no connection has room.
    private var shortSince: NIODeadline?

    init(limits: ProviderConnectionLimits) {
        self.limits = limits
    }

    /// Whether another connection is wanted.
    /// - Parameters:
    ///   - isShort: Whether requests wait that no connection has room for.
    ///   - usable: How many connections are open and not leaving.
    ///   - opening: How many are being made.
    ///   - now: The present.
    /// - Returns: What to do.
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

    /// A connection could not be made, or ended before it answered anything.
    ///
    /// By chance, 0 to 1, the pause is shortened.
    mutating func failed(now: NIODeadline, chance: Double) {
        let pause = Pause.length(limits.firstPause, limits.longestPause, after: failures, chance: chance)
        notBefore = now + TimeAmount(pause)
        failures += 1
    }

    /// A connection answered a request.
    mutating func succeeded() {
        failures = 0
    }

    /// The budget of the process is used up.
    mutating func held(until moment: NIODeadline) {
        notBefore = max(notBefore, moment)
    }
}

/// How long to wait before the next attempt.
enum Pause {
    /// A pause that doubles with each attempt and is shortened by chance to no less than half, so that many who failed
    /// together do not come back together.
    static func length(_ first: Duration, _ longest: Duration, after attempts: Int, chance: Double) -> Duration {
        let whole = min(longest, first * Double(1 << min(attempts, 30)))
        return whole * (0.5 + 0.5 * min(max(chance, 0), 1))
    }
}

/// How many connections a process may open: all clients together, so that a bad network does not turn one into thousands.
struct ConnectBudget {
    static let burst = 256.0
    static let perSecond = 10.0

    private var left = burst
    private var counted = NIODeadline.uptimeNanoseconds(0)

    /// Takes one connection.
    /// - Returns: When to ask again; nil if it may be opened.
    mutating func take(now: NIODeadline) -> NIODeadline? {
        if now > counted {
            let seconds = Double((now - counted).nanoseconds) / 1_000_000_000
            left = min(Self.burst, left + seconds * Self.perSecond)
            counted = now
        }
        guard left >= 1 else { return now + .milliseconds(Int64((1 - left) / Self.perSecond * 1000) + 1) }
        left -= 1
        return nil
    }

    /// The process's.
    static let shared = Mutex(ConnectBudget())
}
