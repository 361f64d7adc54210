import NIOCore
package import NIOSSL

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
