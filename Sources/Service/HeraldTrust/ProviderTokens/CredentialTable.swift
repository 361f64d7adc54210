package import HeraldModel

/// An immutable snapshot of the providers' credentials and of the topic claims.
package struct CredentialTable: Sendable {
    package let claims: TopicClaims
    private let keys: [String: ProviderKey]
    /// The topics of keys that are not revoked, without the suffix of a push type.
    private let keyTopics: Set<Topic>

    /// Makes a table of all provider keys, with the revoked ones; of two equal identifiers, the later key counts.
    package init(keys: some Sequence<ProviderKey>, claims: TopicClaims) {
        let keys = Dictionary(keys.map { ($0.id, $0) }) { _, later in later }
        keyTopics = keys.values.reduce(into: []) { topics, key in
            if key.revoked == nil { topics.formUnion(key.topics.map { TopicScope.bundle(of: $0) }) }
        }
        self.keys = keys
        self.claims = claims
    }

    /// The key of an identifier, revoked or not.
    package func key(_ id: String) -> ProviderKey? {
        keys[id]
    }

    /// Whether a credential names a topic, or a team owns it; with the suffix of a push type or without.
    func isKnown(_ topic: Topic) -> Bool {
        let bundle = TopicScope.bundle(of: topic)
        return claims.owner(of: bundle) != nil || claims.certificateTopics.contains(bundle)
            || keyTopics.contains(bundle)
    }

    /// Decides whether a credential may send to a topic.
    ///
    /// A credential that names the topic may. A key of the whole team may not if another team owns the topic.
    func permission(for topic: Topic, team: String?, scope: TopicScope) -> TopicPermission {
        let isNamed: Bool
        switch scope {
        case .topics(let topics):
            guard topics.contains(topic) else { return .refused }
            isNamed = true
        case .wholeTeam:
            isNamed = false
        case .everyTopic:
            return .allowed
        }
        guard let team else { return .allowed }
        switch claims.owner(of: topic) {
        case team?: return .allowed
        case nil: return .firstUse(TopicUse(topic: TopicScope.bundle(of: topic), team: team, isNamed: isNamed))
        default: return isNamed ? .allowed : .refused
        }
    }
}

/// The permission of a credential for a topic.
package enum TopicPermission: Hashable, Sendable {
    case allowed
    /// Allowed as long as no team owns the topic. An accepted request claims it (``FirstUses``).
    case firstUse(TopicUse)
    case refused
}

/// The use of a topic that no team owns.
package struct TopicUse: Hashable, Sendable {
    /// The topic without the suffix of a push type.
    package let topic: Topic
    package let team: String
    /// Whether the credential names the topic.
    ///
    /// If not, the use is refused once another team owns the topic.
    package let isNamed: Bool
}
