import Crypto
import CryptoExtras
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
    /// What a request's subject calls its holder; nobody has checked it.
    let commonName: String?
    private let key: Certificate.PrivateKey?

    /// - Parameter request: A certificate signing request (RFC 2986) in PEM or DER; nil for a new key. Names and
    ///   extensions in it are passed over, but for what people call the holder: who it is, the issuer decides.
    /// - Throws: ``TrustError/Code/badRequest``.
    init(request: [UInt8]?) throws {
        guard let request else {
            let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
            self.key = key
            publicKey = key.publicKey
            commonName = nil
            return
        }
        let parsed: CertificateSigningRequest
        do {
            parsed = try CertificateSigningRequest(derEncoded: try CertificateHolder.der(request))
        } catch {
            // The library reads no short RSA key either.
            throw TrustError(
                .badRequest,
                "the request is not a certificate signing request in PEM or DER, or its key is neither P-256, P-384, nor "
                    + "RSA of 2048 bits or more"
            )
        }
        // Proof that who asks holds the key.
        guard parsed.publicKey.isValidSignature(parsed.signature, for: parsed) else {
            throw TrustError(.badRequest, "the request is not signed with the key that it is for")
        }
        guard CertificateHolder.isUsable(parsed.publicKey) else {
            throw TrustError(.badRequest, "the request's key must be P-256, P-384, or RSA of 2048 to 8192 bits")
        }
        publicKey = parsed.publicKey
        commonName = CertificateHolder.commonName(parsed.subject)
        key = nil
    }

    /// What the holder is given.
    func pem(_ certificate: Certificate, authority: CertificateAuthority) throws -> String {
        try PEMBundle(certificates: [certificate, authority.certificate], key: key).pem()
    }

    /// Whether a certificate for a key is of any use: BoringSSL takes no other kinds from clients, unless it is told to.
    private static func isUsable(_ key: Certificate.PublicKey) -> Bool {
        if let rsa = _RSA.Signing.PublicKey(key) { return (2048...8192).contains(rsa.keySizeInBits) }
        return P256.Signing.PublicKey(key) != nil || P384.Signing.PublicKey(key) != nil
    }

    private static func commonName(_ subject: DistinguishedName) -> String? {
        let names = subject.flatMap { $0.filter { $0.type == .RDNAttributeType.commonName } }
        return names.last.flatMap { String($0.value) }
    }

    private static func der(_ request: [UInt8]) throws -> [UInt8] {
        guard request.starts(with: "-----BEGIN".utf8) else { return request }
        // Older tools write NEW CERTIFICATE REQUEST.
        return try (try? PEMText.only(CertificateSigningRequest.defaultPEMDiscriminator, in: request))
            ?? PEMText.only("NEW CERTIFICATE REQUEST", in: request)
    }
}
