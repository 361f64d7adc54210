import HeraldDoor
import HeraldGateway
import HeraldTrust
import NIOSSL

/// The TLS contexts of the doors, made from what the trust folder holds now.
///
/// Each door accepts the certificates of one authority only: what is shown at the other door is unknown here.
struct DoorContexts {
    let providers: NIOSSLContext
    let devices: NIOSSLContext
    let activation: NIOSSLContext
    let binary: BinaryGateway.Contexts

    /// - Throws: If a certificate or key in the folder cannot be read.
    init(_ folder: TrustFolder) throws {
        let server = try folder.serverCertificate()
        func context(
            _ authority: CertificateAuthority,
            _ demand: DoorTLS.ClientCertificate,
            _ names: [String],
            newest: TLSVersion? = nil,
            chain: [[UInt8]] = server.chain
        ) throws -> NIOSSLContext {
            try DoorTLS(
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
        // With the authority itself: a device that comes for the first time knows its fingerprint and nothing else.
        let authorities = try folder.publicAuthorities().filter { !server.chain.contains($0) }
        activation = try context(
            folder.deviceAuthority,
            .optional,
            ["http/1.1"],
            chain: server.chain + authorities
        )
        binary = BinaryGateway.Contexts(
            binary: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12),
            feedback: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12)
        )
    }
}
