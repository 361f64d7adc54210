import NIOCore
package import NIOSSL

/// A listener's address and the limits that apply before its protocol begins.
package struct ListenerConfiguration: Sendable {
    /// Name in logs and errors: `provider API`, `devices`.
    package var name: String
    /// The protocol over TLS, and how to ask for it, for the answer to a client of another one: `MQTT`.
    package var speech = "TLS"
    /// Whether the protocol waits for the client's first bytes.
    package var isClientFirst = true
    /// IP address or host name to listen on.
    package var host: String
    /// The port; 0 picks a free one.
    package var port: Int
    /// Name of the option that sets the port, for errors: `--api-port`.
    package var portOption = "port"
    /// Time from the TCP connection to the end of the TLS handshake.
    ///
    /// 10 s: slow links need a few round trips; anything longer occupies a connection slot for nothing.
    package var handshakeTimeout: Duration = .seconds(10)
    /// Maximum number of connections, including those in their handshake.
    ///
    /// At the limit an unknown connection makes way; if all are known, the new one is closed at once.
    package var maximumConnections = 100_000
    /// Maximum age of a connection whose client is not authenticated.
    ///
    /// 30 s: a client needs no time to think, only some round trips.
    package var unknownAge: Duration = .seconds(30)
    /// Percentage of ``maximumConnections`` that one network may have as unknown connections.
    ///
    /// 10: a fleet behind one address connects some hundred at a time, and a stranger cannot take every place.
    package var unknownShare = 10
    /// Networks of the load balancers whose connections begin with a PROXY protocol header.
    package var proxies: [AddressRange] = []
    /// Time from the TCP connection to the end of the PROXY protocol header.
    ///
    /// 5 s: the load balancer sends it without being asked.
    package var proxyTimeout: Duration = .seconds(5)
    /// Maximum bytes per socket read, at least 1.
    ///
    /// Small for listeners with many idle connections, because each connection keeps a buffer of this size.
    package var readBytes = 16 * 1024
    /// Bytes that the system takes of a connection beyond those on their way to the peer; nil for as many as it likes.
    ///
    /// Linux takes up to 4 MiB for a peer that reads nothing (`TCP_NOTSENT_LOWAT`, `net.ipv4.tcp_wmem`).
    package var unsentBytes: Int?
    /// Whether most connections are idle, so that memory per idle connection matters most.
    package var expectsIdleConnections = false

    package init(name: String, host: String, port: Int) {
        self.name = name
        self.host = host
        self.port = port
    }

    /// The answer to a client without TLS.
    var wordsForPlain: String { "this port (\(name)) speaks \(speech) over TLS, and your client spoke without TLS" }

    /// The answer to a client that speaks HTTP/1.1 over TLS.
    var wordsForHTTP1: String { "this port (\(name)) speaks \(speech) only, and your client spoke HTTP/1.1" }

    /// Maximum number of unknown connections of one network, at least 16.
    package var unknownPerNetwork: Int { max(16, maximumConnections * unknownShare / 100) }

    /// Maximum number of descriptors: also connections that are refused or make way, until they are closed.
    package var maximumDescriptors: Int { maximumConnections + Self.descriptorsBeyondLimit }

    package static let descriptorsBeyondLimit = 16
}

/// A listener's TLS settings.
package struct ListenerTLS: Sendable {
    /// Whether a client must show a certificate.
    package enum ClientCertificate: Sendable {
        /// Not requested, as browsers would ask the user for one.
        case unwanted
        /// Requested; the protocol decides about clients without one.
        case optional
        /// The handshake fails without one.
        case required
    }

    /// The server's certificate and its chain, each DER.
    package var certificateChain: [[UInt8]]
    /// The server's private key, PEM.
    package var privateKeyPEM: String
    /// The only authority that is trusted for client certificates, DER; never the system's roots.
    package var clientAuthority: [UInt8]
    package var clientCertificate: ClientCertificate
    /// ALPN names in order of preference; a client that negotiates none is accepted too.
    package var applicationProtocols: [String]
    /// Newest TLS version; nil for no limit.
    ///
    /// Under TLS 1.3 a client that only writes never reads the server's session tickets. When it closes, its system
    /// resets the connection, and its last bytes are lost. In TLS 1.2 the tickets are part of the handshake, and so is
    /// the refusal of a client certificate.
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

    /// The suites of TLS 1.2, in order of preference: those with AEAD and forward secrecy.
    ///
    /// RFC 9113 Appendix A forbids all others for HTTP/2, and Mozilla's intermediate profile for everything.
    private static let cipherSuites: [NIOTLSCipher] = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    /// Makes a context with its own ticket keys: sessions of an earlier context or another listener do not resume.
    ///
    /// TLS 1.2 is the oldest version (swift-nio-ssl's default is 1.0), with ``cipherSuites`` alone. BoringSSL checks chain and dates. Herald checks
    /// the certificate's permissions after every handshake, including resumed ones.
    /// - Throws: `NIOSSLError` if a certificate or key cannot be read.
    package func makeContext() throws -> NIOSSLContext {
        let chain = try certificateChain.map {
            NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: $0, format: .der))
        }
        let key = try NIOSSLPrivateKey(bytes: Array(privateKeyPEM.utf8), format: .pem)
        var tls = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))
        tls.minimumTLSVersion = .tlsv12
        tls.cipherSuiteValues = Self.cipherSuites
        tls.maximumTLSVersion = newestVersion
        tls.applicationProtocols = applicationProtocols
        tls.trustRoots = .certificates([try NIOSSLCertificate(bytes: clientAuthority, format: .der)])
        tls.sendCANameList = true
        // A peer that does not answer close_notify must not keep the connection open for long.
        tls.shutdownTimeout = TLSShutdown.longestWait
        switch clientCertificate {
        case .unwanted: tls.certificateVerification = .none
        case .optional: tls.certificateVerification = .optionalVerification
        case .required: tls.certificateVerification = .noHostnameVerification
        }
        return try NIOSSLContext(configuration: tls)
    }
}
