package import HeraldModel

/// The decision about a notification that a listener posts.
package enum PostDecision: Hashable, Sendable {
    /// Answer now: Herald tries one delivery and stores nothing.
    case accepted
    /// Wait: the post office settles the envelope's completion.
    case pending
    /// Refuse; with ``HeraldModel/RefusalReason/unregistered`` since when the app is removed.
    case refused(RefusalReason, since: WallTime?)
}
