package import HeraldModel

/// What the service knows of providers' credentials at one moment; a change makes another book.
package struct CredentialBook: Sendable {
    /// A topic that a credential names, and the team it was made for.
    package struct Claim: Hashable, Sendable {
        package let topic: Topic
        package let team: String

        package init(topic: Topic, team: String) {
            self.topic = topic
            self.team = team
        }
    }

    private enum Owner {
        case one(String)
        case several
    }

    private let keys: [String: ProviderKey]
    private let owners: [Topic: Owner]

    /// Makes a book.
    /// - Parameters:
    ///   - keys: All provider keys, revoked ones too. Identifiers are distinct; of two equal ones the later counts.
    ///   - certificateClaims: The topics that provider certificates name. A certificate without a team claims nothing.
    ///     An expired one still claims, so that no team's topics fall to others overnight; a revoked one does not.
    package init(keys: some Sequence<ProviderKey>, certificateClaims: some Sequence<Claim>) {
        self.keys = Dictionary(keys.map { ($0.id, $0) }) { _, later in later }
        let keyClaims = self.keys.values.lazy
            .filter { $0.revoked == nil }
            .flatMap { key in key.topics.map { Claim(topic: $0, team: key.team) } }
        var owners: [Topic: Owner] = [:]
        for claim in Array(keyClaims) + Array(certificateClaims) {
            for form in TopicScope.forms(of: claim.topic) {
                switch owners[form] {
                case .none: owners[form] = .one(claim.team)
                case .one(claim.team): break
                case .one, .several: owners[form] = .several
                }
            }
        }
        self.owners = owners
    }

    /// A book without any credential.
    package init() {
        self.init(keys: [], certificateClaims: [])
    }

    /// The key of an identifier, revoked or not.
    package func key(_ id: String) -> ProviderKey? {
        keys[id]
    }

    /// Whether a key that is good for its whole team may send to a topic: unless a credential of another team names it.
    package func mayPush(topic: Topic, team: String) -> Bool {
        switch owners[topic] {
        case .none: true
        case .one(let owner): owner == team
        case .several: false
        }
    }
}
