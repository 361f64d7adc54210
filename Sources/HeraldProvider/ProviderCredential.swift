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
    ///
    /// All clients of a process with the same key share one provider token, however often they are made: the service
    /// refuses whoever changes it more than every 20 minutes.
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
