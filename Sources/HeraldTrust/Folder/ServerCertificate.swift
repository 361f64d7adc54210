package import HeraldModel
import SwiftASN1
import X509

/// What the service's doors show to clients.
package struct ServerCertificate: Sendable {
    /// DER, the server's own first; what a door sends.
    package let chain: [[UInt8]]
    /// PKCS#8, SEC 1 or PKCS#1, in PEM; a secret.
    package let keyPEM: String
    package let names: Set<ServerName>
    package let expires: WallTime
    /// Whether our root signed it.
    ///
    /// One that users brought is never exchanged.
    package let isOurs: Bool

    /// Whether another is to take its place.
    package func isDue(at now: WallTime) -> Bool {
        expires - now <= TrustFolder.serverRenewal
    }

    /// Whether it names Apple's hosts (`herald init --as-apple`).
    package var namesApple: Bool {
        !names.isDisjoint(with: ServerName.apple)
    }

    /// - Throws: ``TrustError/Code/damaged``.
    init(bundle: PEMBundle, path: String, root: CertificateAuthority) throws {
        guard let own = bundle.certificates.first, let key = bundle.key else {
            throw TrustError(.damaged, "\(path) should hold a certificate, its chain, and its private key")
        }
        guard key.publicKey == own.publicKey else {
            throw TrustError(.damaged, "the key in \(path) is not that of its first certificate")
        }
        chain = bundle.certificates.map(PEMBundle.der)
        keyPEM = try key.serializeAsPEM().pemString + "\n"
        names = Set((try? own.extensions.subjectAlternativeNames)?.compactMap { ServerName($0) } ?? [])
        expires = WallTime(own.notValidAfter)
        isOurs =
            own.issuer == root.certificate.subject
            && root.certificate.publicKey.isValidSignature(own.signature, for: own)
    }
}
