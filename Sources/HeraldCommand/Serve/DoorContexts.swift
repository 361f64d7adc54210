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
    let binary: BinaryGateway.Contexts

    /// - Throws: If a certificate or key in the folder cannot be read.
    init(_ folder: TrustFolder) throws {
        let server = try folder.serverCertificate()
        func context(
            _ authority: CertificateAuthority,
            _ demand: DoorTLS.ClientCertificate,
            _ names: [String],
            newest: TLSVersion? = nil
        ) throws -> NIOSSLContext {
            try DoorTLS(
                certificateChain: server.chain,
                privateKeyPEM: server.keyPEM,
                clientAuthority: PEMBundle.der(authority.certificate),
                clientCertificate: demand,
                applicationProtocols: names,
                newestVersion: newest
            ).makeContext()
        }
        providers = try context(folder.providerAuthority, .optional, ["h2"])
        devices = try context(folder.deviceAuthority, .required, ["mqtt"])
        binary = BinaryGateway.Contexts(
            binary: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12),
            feedback: try context(folder.providerAuthority, .optional, ["h2"], newest: .tlsv12)
        )
    }
}
