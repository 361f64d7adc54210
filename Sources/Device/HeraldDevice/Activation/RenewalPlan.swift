import HeraldModel

/// Decides when a device renews its certificate.
///
/// Knows no clock, service or file.
///
/// The first attempt is at two thirds of the certificate's life, or up to a thirtieth of it sooner, so that devices that
/// were activated together do not return together. After a failure: exponential backoff, with shorter pauses near the end.
struct RenewalPlan: Hashable, Sendable {
    enum Step: Hashable, Sendable {
        case wait(Duration)
        case renew
        /// The certificate has expired, and cannot be renewed.
        case expired
    }

    static let shortestPause = Duration.seconds(60)
    static let longestPause = Duration.seconds(6 * 3600)

    let expires: WallTime
    private(set) var nextAttempt: WallTime
    private var pause = shortestPause

    init(begins: WallTime, expires: WallTime, random: Double) {
        self.expires = expires
        let life = max(.zero, expires - begins)
        nextAttempt = begins + life * 2 / 3 - life / 30 * Self.share(random)
    }

    func step(at now: WallTime) -> Step {
        guard now < expires else { return .expired }
        return now < nextAttempt ? .wait(min(nextAttempt, expires) - now) : .renew
    }

    /// Notes a failed attempt.
    mutating func failed(at now: WallTime, random: Double, retryAfter: Duration? = nil) -> Duration {
        // An eighth of the remaining time, so that another attempt always fits in.
        let bound = min(pause, max(Self.shortestPause, (expires - now) / 8))
        let wait = max(bound * (0.5 + 0.5 * Self.share(random)), min(retryAfter ?? .zero, Self.longestPause))
        pause = min(pause * 2, Self.longestPause)
        nextAttempt = now + wait
        return wait
    }

    private static func share(_ random: Double) -> Double {
        random > 0 ? min(random, 1) : 0
    }
}
