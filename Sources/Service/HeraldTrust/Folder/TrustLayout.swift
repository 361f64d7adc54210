import HeraldIdentity

/// The paths of the trust folder's files.
///
///     <data>/ca.pem                       the authority that clients trust
///     <data>/trust/                0700
///       root.pem                   0600   that authority's certificate and key
///       provider-authority.pem     0600   signs provider certificates
///       device-authority.pem       0600   signs device certificates
///       server.pem                 0600   the listeners' certificate, chain, key
///       server.names               0600   the configured names, one a line
///       provider.crl, device.crl   0644   revoked certificates
///       token.keys                 0600   keys that encrypt device tokens
///       announcement.key           0600   signs what devices are told of the service
///       announcement.jws           0600   what they were told last
///       provider-keys.json         0600   public keys of provider tokens
///       ledger.db                  0600   everything issued and revoked (a database)
///       cluster.key                0600   of a cluster's node: seals what the nodes share
///       lock                       0600   locked during each change of a file
package struct TrustLayout: Hashable, Sendable {
    /// The data folder.
    package let data: String

    package init(data: String) {
        self.data = data.count > 1 && data.hasSuffix("/") ? String(data.dropLast()) : data
    }

    /// The certificate that clients trust.
    package var authority: String { data + "/ca.pem" }
    package var folder: String { data + "/trust" }
    var root: String { folder + "/root.pem" }
    var providerAuthority: String { folder + "/provider-authority.pem" }
    var deviceAuthority: String { folder + "/device-authority.pem" }
    package var server: String { folder + "/server.pem" }
    var serverNames: String { folder + "/server.names" }
    var tokenKeys: String { folder + "/token.keys" }
    package var announcementKey: String { folder + "/announcement.key" }
    package var announcement: String { folder + "/announcement.jws" }
    var providerKeys: String { folder + "/provider-keys.json" }
    package var ledger: String { folder + "/ledger.db" }
    package var clusterKey: String { folder + "/cluster.key" }
    var lock: String { folder + "/lock" }

    package func revocationList(_ kind: PeerKind) -> String {
        "\(folder)/\(kind.rawValue).crl"
    }

    /// The path of a file that the nodes of a cluster share, and who may read it.
    func shared(_ name: SharedFile.Name) -> (path: String, secrecy: TrustFile.Secrecy) {
        switch name {
        case .root: (root, .secret)
        case .providerAuthority: (providerAuthority, .secret)
        case .deviceAuthority: (deviceAuthority, .secret)
        case .authority: (authority, .open)
        case .announcementKey: (announcementKey, .secret)
        case .announcement: (announcement, .secret)
        case .providerList: (revocationList(.provider), .open)
        case .deviceList: (revocationList(.device), .open)
        }
    }
}
