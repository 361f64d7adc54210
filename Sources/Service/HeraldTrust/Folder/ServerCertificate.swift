import HeraldIdentity
package import HeraldModel
import SwiftASN1
import X509

/// The certificate that the listeners show to clients.
package struct ServerCertificate: Sendable {
    /// DER, the server's own certificate first.
    package let chain: [[UInt8]]
    /// PKCS#8, SEC 1 or PKCS#1, in PEM; a secret.
    package let keyPEM: String
    package let names: Set<ServerName>
    package let begins: WallTime
    package let expires: WallTime
    /// Whether Herald's own root signed it; Herald never replaces a certificate of the user.
    package let isOurs: Bool

    /// The authority among these certificates (DER) that vouches for the chain; nil if none does.
    package func authority(among authorities: [[UInt8]]) -> [UInt8]? {
        let own = chain.compactMap { try? Certificate(derEncoded: $0) }
        return authorities.first { der in
            guard let authority = try? Certificate(derEncoded: der) else { return false }
            return chain.contains(der)
                || own.contains {
                    $0.issuer == authority.subject && authority.publicKey.isValidSignature($0.signature, for: $0)
                }
        }
    }

    /// Whether it expires soon.
    package func isDue(at now: WallTime) -> Bool {
        expires - now <= ServerCertificateIssuer.renewal
    }

    /// Whether it names Apple's hosts (`herald init --as-apple`).
    package var namesApple: Bool {
        !names.isDisjoint(with: ServerName.apple)
    }

    /// - Throws: ``TrustError/Code/damaged``.
    init(bundle: PEMBundle, path: String, root: CertificateAuthority) throws {
        guard let own = bundle.certificates.first, let key = bundle.key else {
            throw TrustError(.damaged, "\(path) must have a certificate, its chain, and its private key")
        }
        chain = bundle.certificates.map(PEMBundle.der)
        keyPEM = try key.serializeAsPEM().pemString + "\n"
        names = Set((try? own.extensions.subjectAlternativeNames)?.compactMap { ServerName($0) } ?? [])
        begins = WallTime(own.notValidBefore)
        expires = WallTime(own.notValidAfter)
        isOurs =
            own.issuer == root.certificate.subject
            && root.certificate.publicKey.isValidSignature(own.signature, for: own)
    }
}
