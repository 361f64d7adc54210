package import Crypto
package import HeraldModel

/// The public key of a team's provider tokens; the service never keeps the private key.
package struct ProviderKey: Sendable {
    /// Ten of `A`-`Z` and `0`-`9`: the `kid` of tokens.
    package let id: String
    /// Ten of `A`-`Z` and `0`-`9`: the `iss` of tokens.
    package let team: String
    /// The key's topics; empty means all topics of the team.
    package let topics: [Topic]
    package let environments: Set<PushEnvironment>
    package let publicKey: P256.Signing.PublicKey
    package let created: WallTime
    /// Time of its revocation, which is permanent.
    package var revoked: WallTime?

    /// The identifier of the console's own key, and of its team.
    package static let consoleID = "CONSOLE000"

    /// Makes the console's own key, which is in no file and ends with the process.
    package init(console publicKey: P256.Signing.PublicKey, created: WallTime) {
        self.init(
            id: Self.consoleID,
            team: Self.consoleID,
            topics: [],
            environments: Set(PushEnvironment.allCases),
            publicKey: publicKey,
            created: created
        )
    }

    /// The identifier for people: that of the console's own key is `console`.
    var name: String { id == Self.consoleID ? "console" : id }

    /// The topics to which it may send.
    var scope: TopicScope { id == Self.consoleID ? .everyTopic : TopicScope(named: topics) }

    package init(
        id: String,
        team: String,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        publicKey: P256.Signing.PublicKey,
        created: WallTime,
        revoked: WallTime? = nil
    ) {
        self.id = id
        self.team = team
        self.topics = topics
        self.environments = environments
        self.publicKey = publicKey
        self.created = created
        self.revoked = revoked
    }

    /// A new identifier of that form.
    static func randomIdentifier() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
        return String(decoding: (0..<10).map { _ in alphabet[Int.random(in: alphabet.indices)] }, as: UTF8.self)
    }
}
