import HeraldModel
import HeraldTrust

/// What a connection by token is bound to, once it has shown a valid one ("Establishing a token-based connection to
/// APNs"): the first push settles the team, the environments and the topics.
///
/// A value without a clock. A refused token changes nothing: what was bound before still holds.
struct ProviderTokenBinding {
    /// How often a token may change after the first change, which is free.
    static let changeInterval = Duration.seconds(20 * 60)

    private var bound: ProviderTokenIdentity?
    private var lastChange: WallTime?

    init() {}

    /// Whether a valid token has been shown.
    var isBound: Bool { bound != nil }

    /// Judges a valid token that is not the one shown before.
    ///
    /// - Returns: nil if the connection goes on with it.
    mutating func change(to identity: ProviderTokenIdentity, now: WallTime) -> Refusal? {
        guard let bound else {
            self.bound = identity
            return nil
        }
        guard bound.team == identity.team else {
            // APNs documents no reason for this.
            return Refusal(.invalidProviderToken, "this connection is of another team; open a new one")
        }
        // Keys of one scope may follow each other, so that a key can be rotated without a new connection.
        guard
            bound.keyID == identity.keyID
                || (bound.topics == identity.topics && bound.environments == identity.environments)
        else {
            return Refusal(
                .unrelatedKeyIDInToken,
                "the key has another scope than the one this connection began with; open a new connection"
            )
        }
        if let lastChange, now < lastChange + Self.changeInterval, now >= lastChange {
            return Refusal(
                .tooManyProviderTokenUpdates,
                "the token changed less than 20 minutes ago on this connection; use one for 20 to 60 minutes"
            )
        }
        lastChange = now
        self.bound = identity
        return nil
    }
}
