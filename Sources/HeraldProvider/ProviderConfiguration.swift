/// Where a provider's notifications go, and how it proves who it is.
public struct ProviderConfiguration: Sendable {
    /// The service's host name or address; its certificate must name it.
    public var host: String
    /// The service's port: 443 or 2197 at APNs, 2197 unless configured otherwise at Herald.
    public var port: Int
    /// How the provider proves who it is.
    public var credential: ProviderCredential
    /// The authorities that may vouch for the service, PEM; nil for those of the system.
    ///
    /// The service's certificate is always verified, by name and by chain.
    public var authorities: [UInt8]?
    /// How long an answer may take, connecting included.
    public var timeout: Duration = .seconds(30)
    /// Whether to ask the service to say in words what it did (`herald-explain: 1`); APNs ignores it.
    public var explains = false

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, credential: ProviderCredential, authorities: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.credential = credential
        self.authorities = authorities
    }
}

/// How a provider proves who it is: by a certificate on the connection, or by a signed token on each request.
///
/// Its description never shows what it holds.
public struct ProviderCredential: Sendable {
    enum Kind: Sendable {
        case certificate(pem: [UInt8])
        case key(pem: [UInt8], id: String, team: String)
    }

    let kind: Kind

    /// A provider certificate: PEM with the certificate, its chain, and the private key, in any order ("Establishing a
    /// certificate-based connection to APNs").
    public static func certificate(pem: [UInt8]) -> ProviderCredential {
        ProviderCredential(kind: .certificate(pem: pem))
    }

    /// A token signing key ("Establishing a token-based connection to APNs").
    /// - Parameters:
    ///   - pem: The content of `AuthKey_<id>.p8`: a P-256 private key as PKCS #8, PEM.
    ///   - id: The key's identifier, 10 characters.
    ///   - team: The team's identifier, 10 characters.
    /// - Returns: The credential; whether the key can be read is found out when a client is made.
    public static func key(pem: [UInt8], id: String, team: String) -> ProviderCredential {
        ProviderCredential(kind: .key(pem: pem, id: id, team: team))
    }
}

extension ProviderCredential: CustomStringConvertible {
    /// Which kind of credential it is.
    public var description: String {
        switch kind {
        case .certificate: "certificate"
        case .key(_, let id, let team): "key \(id) of team \(team)"
        }
    }
}
