/// Where the parts of the trust folder are.
///
///     <data>/ca.pem                       the authority that everybody trusts
///     <data>/trust/                0700
///       root.pem                   0600   that authority's certificate and key
///       provider-authority.pem     0600   signs provider certificates
///       device-authority.pem       0600   signs device certificates
///       server.pem                 0600   what the doors show: certificate, chain, key
///       server.names               0600   the names that were asked for, one on a line
///       provider.crl, device.crl   0644   the revoked ones
///       token.keys                 0600   seals device tokens
///       provider-keys.json         0600   verifies provider tokens
///       ledger.jsonl               0600   what was issued and revoked
///       lock                       0600   held while one of these is written
package struct TrustLayout: Hashable, Sendable {
    /// The data folder.
    package let data: String

    package init(data: String) {
        self.data = data.count > 1 && data.hasSuffix("/") ? String(data.dropLast()) : data
    }

    /// The certificate that clients are given to trust.
    package var authority: String { data + "/ca.pem" }
    package var folder: String { data + "/trust" }
    var root: String { folder + "/root.pem" }
    var providerAuthority: String { folder + "/provider-authority.pem" }
    var deviceAuthority: String { folder + "/device-authority.pem" }
    package var server: String { folder + "/server.pem" }
    var serverNames: String { folder + "/server.names" }
    var tokenKeys: String { folder + "/token.keys" }
    var providerKeys: String { folder + "/provider-keys.json" }
    var ledger: String { folder + "/ledger.jsonl" }
    var lock: String { folder + "/lock" }

    package func revocationList(_ kind: PeerKind) -> String {
        "\(folder)/\(kind.rawValue).crl"
    }
}
