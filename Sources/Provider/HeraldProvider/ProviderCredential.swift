/// A provider's credential: a certificate on the connection, or a signed token on each request.
///
/// Its description contains no key material.
public struct ProviderCredential: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case certificate(pem: [UInt8])
        case key(pem: [UInt8], id: String, team: String)
    }

    package let kind: Kind

    /// A provider certificate: PEM with the certificate, its chain, and the private key, in any order ("Establishing a
    /// certificate-based connection to APNs").
    public static func certificate(pem: [UInt8]) -> ProviderCredential {
        ProviderCredential(kind: .certificate(pem: pem))
    }

    /// A token signing key ("Establishing a token-based connection to APNs").
    ///
    /// All clients of a process with the same key share one provider token, because the service refuses a token that changes
    /// more than once in 20 minutes.
    /// - Parameters:
    ///   - pem: The content of `AuthKey_<id>.p8`: a P-256 private key, PKCS #8 in PEM.
    ///   - id: The key identifier: 10 characters, A-Z and 0-9.
    ///   - team: The team identifier: 10 characters, A-Z and 0-9.
    /// - Returns: The credential. ``ProviderClient/init(_:)`` reads the key and reports errors.
    public static func key(pem: [UInt8], id: String, team: String) -> ProviderCredential {
        ProviderCredential(kind: .key(pem: pem, id: id, team: team))
    }
}

extension ProviderCredential: CustomStringConvertible {
    /// The kind of credential, with the identifiers of a key.
    public var description: String {
        switch kind {
        case .certificate: "certificate"
        case .key(_, let id, let team): "key \(id) of team \(team)"
        }
    }
}
