import Crypto
import SwiftASN1
import X509

extension TrustFolder {
    /// Whether a certificate can be made for who signed a request.
    /// - Throws: ``TrustError/Code/badRequest``.
    package static func check(request: [UInt8]) throws {
        _ = try CertificateHolder(request: request)
    }
}

/// Whom a certificate is made for: somebody who showed a signing request, or somebody for whom a key is made.
struct CertificateHolder {
    let publicKey: Certificate.PublicKey
    private let key: Certificate.PrivateKey?

    /// - Parameter request: A certificate signing request (RFC 2986) in PEM or DER; nil for a new key. Names and
    ///   extensions in it are passed over: who the holder is, the issuer decides.
    /// - Throws: ``TrustError/Code/badRequest``.
    init(request: [UInt8]?) throws {
        guard let request else {
            let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
            self.key = key
            publicKey = key.publicKey
            return
        }
        let parsed: CertificateSigningRequest
        do {
            parsed = try CertificateSigningRequest(derEncoded: try CertificateHolder.der(request))
        } catch {
            throw TrustError(.badRequest, "the request is not a certificate signing request in PEM or DER")
        }
        // Proof that who asks holds the key.
        guard parsed.publicKey.isValidSignature(parsed.signature, for: parsed) else {
            throw TrustError(.badRequest, "the request is not signed with the key that it is for")
        }
        guard PeerVerifier.isStrong(parsed.publicKey) else {
            throw TrustError(.badRequest, "the request's key is too weak: use P-256, or RSA of at least 2048 bits")
        }
        publicKey = parsed.publicKey
        key = nil
    }

    /// What the holder is given.
    func pem(_ certificate: Certificate, authority: CertificateAuthority) throws -> String {
        try PEMBundle(certificates: [certificate, authority.certificate], key: key).pem()
    }

    private static func der(_ request: [UInt8]) throws -> [UInt8] {
        guard request.starts(with: "-----BEGIN".utf8) else { return request }
        // Older tools write NEW CERTIFICATE REQUEST.
        return try (try? PEMText.only(CertificateSigningRequest.defaultPEMDiscriminator, in: request))
            ?? PEMText.only("NEW CERTIFICATE REQUEST", in: request)
    }
}
