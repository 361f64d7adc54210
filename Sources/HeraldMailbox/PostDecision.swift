package import HeraldModel

/// What a door is told at once about a notification that it posts.
package enum PostDecision: Hashable, Sendable {
    /// Answer now: one delivery was tried, and nothing is to be stored.
    case accepted
    /// The letter's receipt will be settled, from another thread.
    case pending
    /// Refuse; `since` is when the token died, with ``HeraldModel/Rejection/unregistered``.
    case refused(Rejection, since: WallTime?)
}
