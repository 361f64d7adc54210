import HeraldIdentity
import NIOSSL

/// TLS of a provider: verifies the service by chain and name, presents the certificate if there is one.
enum ProviderTLS {
    /// Makes the TLS context of a configuration, which offers `protocols` by ALPN.
    /// - Throws: ``ProviderError/Code/badCredential``, ``ProviderError/Code/badAuthority``.
    static func context(_ configuration: ProviderConfiguration, protocols: [String] = []) throws -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = protocols
        if !configuration.verifiesName { tls.certificateVerification = .noHostnameVerification }
        if let pem = configuration.authorities {
            do {
                tls.trustRoots = .certificates(try certificates(try PEMFile(pem).certificates()))
            } catch {
                throw ProviderError(.badAuthority, "the file of the authority cannot be used: \(error)")
            }
        }
        if case .certificate(let pem) = configuration.credential.kind {
            do {
                let identity = try PEMFile(pem).identity()
                tls.certificateChain = try certificates(identity.certificates).map { .certificate($0) }
                tls.privateKey = .privateKey(try key(identity.key))
            } catch {
                throw ProviderError(.badCredential, "the file of the certificate cannot be used: \(error)")
            }
        }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            // Without authorities in the configuration, the system's count.
            if configuration.authorities == nil, (try? NIOSSLContext(configuration: .makeClientConfiguration())) == nil
            {
                throw ProviderError(
                    .badAuthority,
                    "this machine has no authorities to trust: install ca-certificates, or name the service's own (ca)"
                )
            }
            throw ProviderError(
                .badCredential,
                "the certificate and its key cannot be used: \(TLSFault.words(for: error))"
            )
        }
    }

    private static func certificates(_ all: [[UInt8]]) throws(PEMFault) -> [NIOSSLCertificate] {
        try all.map { der throws(PEMFault) in
            guard let certificate = try? NIOSSLCertificate(bytes: der, format: .der) else {
                throw PEMFault.unusable("certificate")
            }
            return certificate
        }
    }

    private static func key(_ key: PEMPrivateKey) throws(PEMFault) -> NIOSSLPrivateKey {
        guard let own = try? NIOSSLPrivateKey(bytes: key.der, format: .der) else {
            throw PEMFault.unusable("private key")
        }
        return own
    }
}
