import HeraldModel
import NIOCore

/// Decides when to sign a new provider token: at most every 20 minutes, at least every 60 ("Establishing a token-based
/// connection to APNs").
///
/// It uses the wall clock, which the token contains, and a monotonic clock, which measures the token's age. They diverge
/// when somebody sets the wall clock, or the machine sleeps.
struct TokenSchedule {
    /// Age at which a token is replaced: 50 minutes, a margin for clocks that differ.
    static let renewal = Duration.seconds(50 * 60)
    /// Minimum age for a replacement after the service calls the token too old.
    static let shortestLife = Duration.seconds(20 * 60)
    /// How far ahead of the wall clock an issue time may be; services tolerate about as much.
    static let skew = Duration.seconds(60)

    private struct Held {
        let token: String
        let issued: WallTime
        let made: NIODeadline
    }

    private var held: Held?

    /// The token to use now; nil if the caller must sign one and pass it to ``made(_:wall:now:)``.
    func token(wall: WallTime, now: NIODeadline) -> String? {
        guard let held, age(of: held, wall: wall, now: now) < Self.renewal, held.issued <= wall + Self.skew else {
            return nil
        }
        return held.token
    }

    mutating func made(_ token: String, wall: WallTime, now: NIODeadline) {
        held = Held(token: token, issued: wall, made: now)
    }

    /// Notes that the service refused a token as too old.
    ///
    /// A young token is not replaced: the clocks differ, so a new token would have the same time, and the service also
    /// refuses frequent changes.
    /// - Returns: Whether the next request gets another token.
    mutating func expired(_ token: String, wall: WallTime, now: NIODeadline) -> Bool {
        guard let held, held.token == token else { return true }
        guard age(of: held, wall: wall, now: now) >= Self.shortestLife else { return false }
        self.held = nil
        return true
    }

    private func age(of held: Held, wall: WallTime, now: NIODeadline) -> Duration {
        max(wall - held.issued, .nanoseconds((now - held.made).nanoseconds))
    }
}
