package import HeraldModel

/// What a provider proves itself with, as operators see it: a certificate, or a key for provider tokens.
package struct Credential: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, Codable {
        case certificate
        case key
    }

    package let id: String
    package let kind: Kind
    /// Lower-case hex; nil for keys.
    package let serial: String?
    package let team: String?
    /// Empty for a key that is good for its whole team.
    package let topics: [Topic]
    package let environments: Set<PushEnvironment>
    package let created: WallTime
    /// Nil for keys, which live until they are revoked.
    package let expires: WallTime?
    package var revoked: WallTime?
}

/// A device that was given a certificate, as operators see it.
package struct EnrolledDevice: Hashable, Sendable {
    package let id: DeviceID
    package let name: String?
    /// Of its newest certificate; lower-case hex.
    package private(set) var serial: String
    package let created: WallTime
    /// When its newest certificate ends.
    package private(set) var expires: WallTime
    package var revoked: WallTime?
    /// The certificates before the newest, each of which is good until its own end.
    package private(set) var earlier: [Earlier] = []

    /// A certificate that another has taken the place of.
    package struct Earlier: Hashable, Sendable {
        package let serial: String
        package let expires: WallTime
    }

    package init(id: DeviceID, name: String?, serial: String, created: WallTime, expires: WallTime) {
        self.id = id
        self.name = name
        self.serial = serial
        self.created = created
        self.expires = expires
    }

    /// The serial numbers of all its certificates.
    var serials: [String] { earlier.map(\.serial) + [serial] }

    /// How many certificates are good at a moment, if it is not revoked.
    func certificatesInForce(at now: WallTime) -> Int {
        earlier.count { $0.expires >= now } + (expires >= now ? 1 : 0)
    }

    mutating func renew(serial: String, expires: WallTime) {
        earlier.append(Earlier(serial: self.serial, expires: self.expires))
        self.serial = serial
        self.expires = expires
    }
}

// Every member is always there, as null where there is nothing to say; times are RFC 3339 in UTC.

extension Credential: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, kind, serial, team, topics, environments, created, expires, revoked
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(kind, forKey: .kind)
        try container.encode(serial, forKey: .serial)
        try container.encode(team, forKey: .team)
        try container.encode(topics, forKey: .topics)
        try container.encode(environments.map(\.rawValue).sorted(), forKey: .environments)
        try container.encode(created.rfc3339, forKey: .created)
        try container.encode(expires?.rfc3339, forKey: .expires)
        try container.encode(revoked?.rfc3339, forKey: .revoked)
    }
}

extension EnrolledDevice: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, name, serial, created, expires, revoked
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id.name, forKey: .id)
        try container.encode(name, forKey: .name)
        try container.encode(serial, forKey: .serial)
        try container.encode(created.rfc3339, forKey: .created)
        try container.encode(expires.rfc3339, forKey: .expires)
        try container.encode(revoked?.rfc3339, forKey: .revoked)
    }
}
