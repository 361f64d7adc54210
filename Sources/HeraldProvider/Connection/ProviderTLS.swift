import NIOSSL

/// TLS of a provider: verifies the service by chain and name, presents the certificate if there is one.
enum ProviderTLS {
    /// Makes the TLS context of a configuration.
    /// - Parameters:
    ///   - configuration: Authorities and credential.
    ///   - protocols: Protocols to offer by ALPN.
    /// - Returns: The context.
    /// - Throws: ``ProviderError/Code/badCredential``, ``ProviderError/Code/badAuthority``.
    static func context(_ configuration: ProviderConfiguration, protocols: [String] = []) throws -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = protocols
        if !configuration.verifiesName { tls.certificateVerification = .noHostnameVerification }
        if let pem = configuration.authorities {
            guard let authorities = try? NIOSSLCertificate.fromPEMBytes(pem), !authorities.isEmpty else {
                throw ProviderError(.badAuthority, "the file of the authority contains no certificate in PEM")
            }
            tls.trustRoots = .certificates(authorities)
        }
        if case .certificate(let pem) = configuration.credential.kind {
            tls.certificateChain = try chain(pem)
            tls.privateKey = .privateKey(try privateKey(pem))
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
            throw ProviderError(.badCredential, "the certificate and its key cannot be used: \(error)")
        }
    }

    private static func chain(_ pem: [UInt8]) throws -> [NIOSSLCertificateSource] {
        guard let chain = try? NIOSSLCertificate.fromPEMBytes(pem), !chain.isEmpty else {
            throw ProviderError(.badCredential, "the file of the certificate contains no certificate in PEM")
        }
        return chain.map { .certificate($0) }
    }

    private static func privateKey(_ pem: [UInt8]) throws -> NIOSSLPrivateKey {
        do {
            return try NIOSSLPrivateKey(bytes: pem, format: .pem)
        } catch {
            throw ProviderError(
                .badCredential,
                "the file of the certificate contains no private key in PEM: append it"
            )
        }
    }
}
