package import HeraldModel

/// The operator's view of a provider's certificate, or of its key for provider tokens.
package struct Credential: Hashable, Sendable {
    package let id: String
    package let kind: CredentialKind
    /// Lower-case hex; nil for keys.
    package let serial: String?
    package let team: String?
    /// Empty for a key of the whole team.
    package let topics: [Topic]
    package let environments: Set<PushEnvironment>
    package let created: WallTime
    /// Nil for keys, which are valid until they are revoked.
    package let expires: WallTime?
    package var revoked: WallTime?

    package init(
        id: String,
        kind: CredentialKind,
        serial: String?,
        team: String?,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        created: WallTime,
        expires: WallTime?,
        revoked: WallTime? = nil
    ) {
        self.id = id
        self.kind = kind
        self.serial = serial
        self.team = team
        self.topics = topics
        self.environments = environments
        self.created = created
        self.expires = expires
        self.revoked = revoked
    }
}

/// The certificate of a device's newest activation, which the same request gets again.
package struct KeptCertificate: Hashable, Sendable {
    /// In DER; nil since a new device has connected, or a further certificate has replaced it.
    package var certificate: [UInt8]?
    /// Rises with each change, so that nodes agree which is the newest.
    package var revision: Int64 = 0

    package init(_ certificate: [UInt8]? = nil, revision: Int64 = 0) {
        (self.certificate, self.revision) = (certificate, revision)
    }
}

/// The operator's view of a device that has a certificate.
package struct EnrolledDevice: Hashable, Sendable {
    package let id: DeviceID
    package let name: String?
    package let created: WallTime
    package var revoked: WallTime?
    /// The invitation that it used; nil for a device that was enrolled.
    package let invitation: String?
    package var labels = DeviceLabels()
    /// The version of the announcement that it has; 0 if it has never said so, negative if the operator has told it by hand.
    package var announcement: Int64 = 0
    package var kept = KeptCertificate()
    /// The newest connection that this node knows of.
    package var sighting: DeviceSighting?
    /// A connection to any node, at most ``DeviceSighting/sharedEvery`` older than the newest; nil if it never connected.
    package var seen: WallTime?
    /// The earlier certificates, each valid until it expires.
    private(set) var earlier: [Certificate] = []
    private var newest: Certificate

    package struct Certificate: Hashable, Sendable {
        /// Lower-case hex.
        package let serial: String
        package let expires: WallTime

        package init(serial: String, expires: WallTime) {
            self.serial = serial
            self.expires = expires
        }
    }

    package init(
        id: DeviceID,
        name: String?,
        certificate: Certificate,
        created: WallTime,
        revoked: WallTime? = nil,
        invitation: String? = nil
    ) {
        self.id = id
        self.name = name
        self.invitation = invitation
        self.created = created
        self.revoked = revoked
        newest = certificate
    }

    /// The newest moment at which a node saw it, as far as this one knows.
    package var lastSeen: WallTime? {
        guard let sighting, let seen else { return sighting?.at ?? seen }
        return max(sighting.at, seen)
    }

    /// Serial number of the newest certificate.
    package var serial: String { newest.serial }

    /// Expiry of the newest certificate.
    package var expires: WallTime { newest.expires }

    /// All certificates, oldest first.
    package var certificates: [Certificate] { earlier + [newest] }

    package mutating func renew(with certificate: Certificate) {
        earlier.append(newest)
        newest = certificate
    }
}
