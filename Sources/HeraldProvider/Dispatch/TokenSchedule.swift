import HeraldModel
import NIOCore

/// When a provider token is made: not more often than every 20 minutes and not less often than every 60 ("Establishing a
/// token-based connection to APNs").
///
/// Two clocks are read: the wall clock, whose time stands in the token, and one that nobody sets, which measures how long
/// ago it was made. They differ where the wall clock was set, or the machine slept.
struct TokenSchedule {
    /// How old a token is when it is replaced: with room before the hour, for clocks that differ.
    static let renewal = Duration.seconds(50 * 60)
    /// How old it is at least when it is replaced because the service calls it too old.
    static let shortestLife = Duration.seconds(20 * 60)
    /// How far ahead of the wall clock its time may be: services allow about as much.
    static let skew = Duration.seconds(60)

    private struct Held {
        let token: String
        let issued: WallTime
        let made: NIODeadline
    }

    private var held: Held?

    /// The token to use now; nil if one is to be made, and given to ``made(_:wall:now:)``.
    func token(wall: WallTime, now: NIODeadline) -> String? {
        guard let held, age(of: held, wall: wall, now: now) < Self.renewal, held.issued <= wall + Self.skew else {
            return nil
        }
        return held.token
    }

    mutating func made(_ token: String, wall: WallTime, now: NIODeadline) {
        held = Held(token: token, issued: wall, made: now)
    }

    /// The service calls a token too old.
    ///
    /// One that was made a short while ago is not replaced: the next would have the same time, since it is the clocks
    /// that differ, and changing it often is refused too.
    /// - Returns: Whether another is to be used from now on.
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
