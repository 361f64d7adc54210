/// Settings of a connection to NATS.
package struct NATSConfiguration: Sendable {
    /// Servers of one cluster, at least one.
    ///
    /// The connection uses one at a time, in random order.
    package var servers: [NATSServerAddress]
    /// Name that operators see in the server's list of connections.
    package var name: String
    package var credential: NATSCredential
    /// TLS settings; nil: the system's authorities, and TLS only if an address or the server demands it.
    package var tls: NATSTLS?
    package var limits = NATSLimits()

    package init(
        servers: [NATSServerAddress],
        name: String,
        credential: NATSCredential = .none,
        tls: NATSTLS? = nil
    ) {
        self.servers = servers
        self.name = name
        self.credential = credential
        self.tls = tls
    }
}

/// TLS settings of a connection.
///
/// If they are given, a connection without TLS is refused.
package struct NATSTLS: Sendable {
    /// Certificates of the authorities to trust, in PEM; nil: those of the system.
    package var authorities: [UInt8]?
    /// Certificate chain of the client, in PEM, for servers that verify clients.
    package var certificates: [UInt8]?
    /// Private key of the client's certificate, in PEM.
    package var key: [UInt8]?
    /// Name to expect in the server's certificate; nil: the host of the address.
    package var serverName: String?
    /// Whether TLS begins at once, before the server's INFO (`handshake_first` in its configuration).
    package var isFirst = false

    package init(authorities: [UInt8]? = nil, certificates: [UInt8]? = nil, key: [UInt8]? = nil) {
        self.authorities = authorities
        self.certificates = certificates
        self.key = key
    }
}
