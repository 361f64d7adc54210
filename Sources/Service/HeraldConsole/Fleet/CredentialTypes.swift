import HeraldJSON
package import HeraldModel

/// A provider's certificate or key.
package struct CredentialEntry: Codable, SnakeCased, Hashable, Sendable {
    package let id: String
    package let kind: CredentialKind
    /// Lower-case hex; nil for a key.
    package let serial: String?
    package let team: String?
    package let topics: [Topic]
    package let environments: [PushEnvironment]
    package let created: String
    package let expires: String?
    package let revoked: String?
    /// First and last request with it since this service started.
    package var firstUsed: String?
    package var lastUsed: String?
    /// Number of requests with it since this service started, and how many of them were refused; nil if nobody counted them.
    package var requests: Int?
    package var refused: Int?

    package init(
        id: String,
        kind: CredentialKind,
        serial: String?,
        team: String?,
        topics: [Topic],
        environments: [PushEnvironment],
        created: String,
        expires: String?,
        revoked: String?
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

/// An order for a provider's certificate.
package struct CertificateOrder: Codable, Hashable, Sendable {
    /// Certificate signing request in PEM.
    package let csr: String
    package let topics: [String]
    package let team: String?
    /// Both without it.
    package let environments: [String]?
    /// Lifetime; 365 without it.
    package let days: Int?
}

/// An order to take a provider's public key.
package struct KeyOrder: Codable, SnakeCased, Hashable, Sendable {
    /// P-256 in PEM.
    package let publicKey: String
    package let team: String
    /// Without one, the key is the whole team's.
    package let topics: [String]?
    /// Both without it.
    package let environments: [String]?
}

/// A new certificate of a provider.
package struct IssuedCertificateEntry: Codable, Hashable, Sendable {
    package let credential: CredentialEntry
    /// Certificate and its authority, in PEM.
    package let certificate: String

    package init(credential: CredentialEntry, certificate: String) {
        self.credential = credential
        self.certificate = certificate
    }
}
