import HeraldModel
import HeraldTrust

/// Binds a connection to the team, environments and topics of its first valid provider token ("Establishing a
/// token-based connection to APNs").
///
/// A value without a clock. A refused token leaves the binding unchanged.
struct ProviderTokenBinding {
    /// Minimum time between changes of the token; the first change is free.
    static let changeInterval = Duration.seconds(20 * 60)

    private var bound: ProviderTokenIdentity?
    private var lastChange: WallTime?

    init() {}

    /// Whether the connection has presented a valid token.
    var isBound: Bool { bound != nil }

    var team: String? { bound?.team }

    /// Checks a valid token that differs from the one before.
    ///
    /// - Returns: nil if the connection may use it.
    mutating func change(to identity: ProviderTokenIdentity, now: WallTime) -> Refusal? {
        guard let bound else {
            self.bound = identity
            return nil
        }
        guard bound.team == identity.team else {
            // APNs documents no reason for this.
            return Refusal(
                .invalidProviderToken,
                "the token is of another team than this connection; open a new connection"
            )
        }
        // A key may follow another one of the same scope, so that keys can be rotated without a new connection.
        guard
            bound.keyID == identity.keyID
                || (bound.topics == identity.topics && bound.environments == identity.environments)
        else {
            return Refusal(
                .unrelatedKeyIDInToken,
                "the key has another scope than the first key of this connection; open a new connection"
            )
        }
        if let lastChange, now < lastChange + Self.changeInterval, now >= lastChange {
            return Refusal(
                .tooManyProviderTokenUpdates,
                "the token of this connection changed less than 20 minutes ago; use a token for 20 to 60 minutes"
            )
        }
        lastChange = now
        self.bound = identity
        return nil
    }
}
