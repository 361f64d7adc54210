package import HeraldModel

/// A team's ownership of a topic and of its forms with a suffix.
package struct TopicClaim: Hashable, Sendable {
    package enum Origin: String, Hashable, Sendable, CaseIterable, Codable {
        /// The team was the first to use the topic.
        case use
        /// A credential of the team names the topic.
        case credential
        case `operator`
    }

    /// The topic without the suffix of a push type.
    package let topic: Topic
    package let team: String
    package let origin: Origin
    package let since: WallTime

    package init(_ topic: Topic, team: String, origin: Origin, since: WallTime) {
        self.topic = TopicScope.bundle(of: topic)
        self.team = team
        self.origin = origin
        self.since = since
    }
}

/// One version of all topic claims, and of the topics of certificates.
package struct TopicClaims: Sendable {
    /// The most claims by use that a team may have; claims by credentials and by the operator do not count.
    package static let maximumUses = 100

    /// Greater after each change.
    package let version: Int64
    package let all: [Topic: TopicClaim]
    /// The topics that a certificate of the ledger names, if it is not revoked; without the suffix of a push type.
    package let certificateTopics: Set<Topic>
    /// The credentials of all certificates of the ledger, by their serial numbers.
    package let credentials: [String: String]
    private let uses: [String: Int]

    package init(
        version: Int64,
        _ claims: some Sequence<TopicClaim>,
        certificateTopics: [Topic] = [],
        credentials: [String: String] = [:]
    ) {
        self.credentials = credentials
        self.version = version
        self.certificateTopics = Set(certificateTopics.map { TopicScope.bundle(of: $0) })
        all = Dictionary(claims.map { ($0.topic, $0) }) { _, later in later }
        uses = all.values.reduce(into: [:]) { uses, claim in
            if claim.origin == .use { uses[claim.team, default: 0] += 1 }
        }
    }

    /// The team that owns a topic; nil if no team does.
    package func owner(of topic: Topic) -> String? {
        claim(of: topic)?.team
    }

    /// The claim of a topic; nil if no team owns it.
    package func claim(of topic: Topic) -> TopicClaim? {
        all[TopicScope.bundle(of: topic)]
    }

    /// The number of a team's claims by use.
    func useCount(of team: String) -> Int { uses[team] ?? 0 }
}

// Every member is always present; times are RFC 3339 in UTC.
extension TopicClaim: Encodable {
    private enum CodingKeys: String, CodingKey {
        case topic, team, origin, since
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(topic, forKey: .topic)
        try container.encode(team, forKey: .team)
        try container.encode(origin, forKey: .origin)
        try container.encode(since.rfc3339, forKey: .since)
    }
}
