import HeraldGateway
import HeraldIdentity
import HeraldListener
import HeraldTrust
import NIOSSL

/// The TLS contexts of the listeners, made from the trust folder.
///
/// Each accepts client certificates of one authority; the console's accepts none.
package struct ListenerContexts {
    let providers: NIOSSLContext
    let devices: NIOSSLContext
    let activation: NIOSSLContext
    let console: NIOSSLContext
    let binary: BinaryGateway.Contexts

    /// - Throws: If a certificate or key cannot be used.
    init(_ folder: TrustFolder, _ server: ServerCertificate) throws {
        func context(
            _ authority: CertificateAuthority,
            _ demand: ListenerTLS.ClientCertificate,
            _ names: [String],
            newest: TLSVersion? = nil,
            chain: [[UInt8]] = server.chain
        ) throws -> NIOSSLContext {
            try ListenerTLS(
                certificateChain: chain,
                privateKeyPEM: server.keyPEM,
                clientAuthority: PEMBundle.der(authority.certificate),
                clientCertificate: demand,
                applicationProtocols: names,
                newestVersion: newest
            ).makeContext()
        }
        providers = try context(folder.providerAuthority, .optional, ["h2"])
        devices = try context(folder.deviceAuthority, .required, ["mqtt"])
        // With the authority: a new device knows only its fingerprint.
        let authorities = try folder.publicAuthorities().filter { !server.chain.contains($0) }
        activation = try context(
            folder.deviceAuthority,
            .optional,
            ["http/1.1"],
            chain: server.chain + authorities
        )
        console = try context(folder.providerAuthority, .unwanted, ["http/1.1"])
        binary = BinaryGateway.Contexts(
            binary: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12),
            feedback: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12)
        )
    }
}
