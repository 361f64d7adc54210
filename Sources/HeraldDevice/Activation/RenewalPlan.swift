import HeraldModel

/// When a device renews its certificate: knows no clock, service or file.
///
/// At two thirds of its life, or up to a thirtieth of it sooner, so that devices that were activated together do not come
/// back together. After a failure again, later and later, and more often towards the end.
struct RenewalPlan: Hashable, Sendable {
    enum Step: Hashable, Sendable {
        case wait(Duration)
        case renew
        /// The certificate has ended, and with it the right to another.
        case over
    }

    static let shortestPause = Duration.seconds(60)
    static let longestPause = Duration.seconds(6 * 3600)

    let expires: WallTime
    private(set) var nextAttempt: WallTime
    private var pause = shortestPause

    /// - Parameters:
    ///   - begins: When the certificate begins.
    ///   - expires: When it ends.
    ///   - random: From 0 to 1.
    init(begins: WallTime, expires: WallTime, random: Double) {
        self.expires = expires
        let life = max(.zero, expires - begins)
        nextAttempt = begins + life * 2 / 3 - life / 30 * Self.share(random)
    }

    func step(at now: WallTime) -> Step {
        guard now < expires else { return .over }
        return now < nextAttempt ? .wait(min(nextAttempt, expires) - now) : .renew
    }

    /// Notes that an attempt came to nothing.
    /// - Parameters:
    ///   - now: When it did.
    ///   - random: From 0 to 1.
    ///   - wish: How long the service asks to be left alone.
    /// - Returns: The pause until the next.
    mutating func failed(at now: WallTime, random: Double, wish: Duration? = nil) -> Duration {
        // An eighth of what is left, so that there is always another attempt in time.
        let bound = min(pause, max(Self.shortestPause, (expires - now) / 8))
        let wait = max(bound * (0.5 + 0.5 * Self.share(random)), min(wish ?? .zero, Self.longestPause))
        pause = min(pause * 2, Self.longestPause)
        nextAttempt = now + wait
        return wait
    }

    private static func share(_ random: Double) -> Double {
        random > 0 ? min(random, 1) : 0
    }
}
