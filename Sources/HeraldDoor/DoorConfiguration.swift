import NIOCore
package import NIOSSL

/// Where a door listens and what it demands before any protocol is spoken.
package struct DoorConfiguration: Sendable {
    /// For logs and errors: `provider API`, `devices`.
    package var name: String
    /// The address to listen on, as an address or a host name.
    package var host: String
    /// The port; 0 picks a free one.
    package var port: Int
    /// What chooses the port, for errors: `--api-port`.
    package var portOption = "port"
    /// How long a client may take from the TCP connection to the end of the TLS handshake.
    ///
    /// 10 s: slow links need a few round trips, and everything longer is a held slot.
    package var handshakeTimeout: Duration = .seconds(10)
    /// The most connections at one time, those in their handshake included.
    ///
    /// Past it new ones are closed at once.
    package var maximumConnections = 100_000
    /// The largest piece that is read from a socket at once, in bytes, at least 1; small for doors with many idle
    /// connections, each of which keeps room for one.
    package var readBytes = 16 * 1024
    /// Whether most connections are idle, so that what an idle one keeps in memory counts more than anything else.
    package var expectsIdleConnections = false

    package init(name: String, host: String, port: Int) {
        self.name = name
        self.host = host
        self.port = port
    }
}

/// What a door shows and demands in its TLS handshakes.
package struct DoorTLS: Sendable {
    /// Whether a client must show a certificate.
    package enum ClientCertificate: Sendable {
        /// Asked for; a client without one gets in, and its protocol decides.
        case optional
        /// No handshake without one.
        case required
    }

    /// The server's certificate and its chain, each DER.
    package var certificateChain: [[UInt8]]
    /// The server's private key, PEM.
    package var privateKeyPEM: String
    /// The one authority whose certificates are accepted from clients, DER.
    ///
    /// Never the system's roots.
    package var clientAuthority: [UInt8]
    package var clientCertificate: ClientCertificate
    /// ALPN names offered, most wanted first; a client that negotiates none gets in all the same.
    package var applicationProtocols: [String]
    /// The newest version of TLS that is spoken; nil for the newest that there is.
    ///
    /// With TLS 1.3 a server's session tickets lie unread at a client that only writes, and when such a client closes,
    /// its system resets the connection and takes what it wrote last with it. In TLS 1.2 tickets are part of the
    /// handshake, and so is the refusal of a client's certificate.
    package var newestVersion: TLSVersion?

    package init(
        certificateChain: [[UInt8]],
        privateKeyPEM: String,
        clientAuthority: [UInt8],
        clientCertificate: ClientCertificate,
        applicationProtocols: [String],
        newestVersion: TLSVersion? = nil
    ) {
        self.certificateChain = certificateChain
        self.privateKeyPEM = privateKeyPEM
        self.clientAuthority = clientAuthority
        self.clientCertificate = clientCertificate
        self.applicationProtocols = applicationProtocols
        self.newestVersion = newestVersion
    }

    /// A fresh context, with ticket keys of its own: sessions of an earlier context, or of another door, do not resume.
    ///
    /// TLS 1.2 is the least (swift-nio-ssl would take 1.0). Chain and dates are BoringSSL's to check; what a certificate
    /// is allowed is decided after every handshake, resumed ones too, from the certificate itself.
    /// - Throws: `NIOSSLError` if a certificate or key cannot be read.
    package func makeContext() throws -> NIOSSLContext {
        let chain = try certificateChain.map {
            NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: $0, format: .der))
        }
        let key = try NIOSSLPrivateKey(bytes: Array(privateKeyPEM.utf8), format: .pem)
        var tls = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
        tls.minimumTLSVersion = .tlsv12
        tls.maximumTLSVersion = newestVersion
        tls.applicationProtocols = applicationProtocols
        tls.trustRoots = .certificates([try NIOSSLCertificate(bytes: clientAuthority, format: .der)])
        tls.sendCANameList = true
        // A peer that does not answer the end of TLS is not waited for much longer than one that does.
        tls.shutdownTimeout = TLSFarewell.longestWait
        switch clientCertificate {
        case .optional: tls.certificateVerification = .optionalVerification
        case .required: tls.certificateVerification = .noHostnameVerification
        }
        return try NIOSSLContext(configuration: tls)
    }
}
