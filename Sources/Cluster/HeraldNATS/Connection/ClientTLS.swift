import NIOCore
import NIOSSL

/// TLS of a connection: verifies the server by chain and name, presents the client's certificate if there is one.
enum ClientTLS {
    /// - Throws: ``NATSError/Kind/badSetting`` with what cannot be used.
    static func context(_ settings: NATSTLS) throws(NATSError) -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let pem = settings.authorities {
            guard let authorities = try? NIOSSLCertificate.fromPEMBytes(pem), !authorities.isEmpty else {
                throw NATSError(.badSetting, "the authorities for NATS contain no certificate in PEM")
            }
            tls.trustRoots = .certificates(authorities)
        }
        switch (settings.certificates, settings.key) {
        case (nil, nil): break
        case (let certificates?, let key?):
            guard let chain = try? NIOSSLCertificate.fromPEMBytes(certificates), !chain.isEmpty else {
                throw NATSError(.badSetting, "the client's certificate for NATS is not a certificate in PEM")
            }
            guard let privateKey = try? NIOSSLPrivateKey(bytes: key, format: .pem) else {
                throw NATSError(.badSetting, "the key of the client's certificate for NATS is not a private key in PEM")
            }
            tls.certificateChain = chain.map { .certificate($0) }
            tls.privateKey = .privateKey(privateKey)
        case (_?, nil): throw NATSError(.badSetting, "the client's certificate for NATS has no key")
        case (nil, _?): throw NATSError(.badSetting, "there is a key for NATS and no certificate of it")
        }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            throw NATSError(.badSetting, "TLS for NATS cannot be set up: \(error)")
        }
    }

    /// Handler for the beginning of a pipeline; `name` is the host, or the name to expect in its certificate.
    /// - Throws: ``NATSError/Kind/badSetting`` if TLS has no such names.
    static func handler(_ context: NIOSSLContext, name: String) throws(NATSError) -> NIOSSLClientHandler {
        // TLS sends no server name for an address. NIOSSL still compares the address with the certificate.
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        do {
            return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
        } catch {
            throw NATSError(.badSetting, "\"\(name)\" is not a name for TLS: \(error)")
        }
    }
}
