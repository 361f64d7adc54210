import Crypto
import HeraldIdentity
import SwiftASN1
import X509

/// The key that a new certificate is for: from a certificate signing request (RFC 2986), or generated.
package struct CertificateRequest {
    let publicKey: Certificate.PublicKey
    /// The common name of the request's subject, which is not verified.
    let commonName: String?
    private let key: Certificate.PrivateKey?

    /// Checks that a certificate can be issued for a request.
    /// - Throws: ``TrustError/Code/badRequest``.
    package static func check(_ request: [UInt8]) throws {
        _ = try CertificateRequest(request)
    }

    /// - Parameter request: In PEM or DER; nil to generate a key. Its other names and its extensions are ignored, because
    ///   the issuer decides them.
    /// - Throws: ``TrustError/Code/badRequest``.
    init(_ request: [UInt8]?) throws {
        guard let request else {
            let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
            self.key = key
            publicKey = key.publicKey
            commonName = nil
            return
        }
        let parsed: CertificateSigningRequest
        do {
            let der = try PEMFile(request).request()
            // The library fails for all of these without a word that says which.
            if let fault = RequestFault(der) { throw PEMFault("\(fault)") }
            parsed = try CertificateSigningRequest(derEncoded: der)
        } catch {
            let fault = error as? PEMFault ?? PEMFault("\(RequestFault.damaged)")
            throw TrustError(.badRequest, "the certificate signing request cannot be used: \(fault)")
        }
        // Proof that the requester has the private key.
        guard parsed.publicKey.isValidSignature(parsed.signature, for: parsed) else {
            throw TrustError(.badRequest, "the request is not signed with its own key")
        }
        publicKey = parsed.publicKey
        commonName = CertificateRequest.commonName(parsed.subject)
        key = nil
    }

    /// The issued certificate, its authority, and the generated key, if any.
    func pem(_ certificate: Certificate, authority: CertificateAuthority) throws -> String {
        try PEMBundle(certificates: [certificate, authority.certificate], key: key).pem()
    }

    private static func commonName(_ subject: DistinguishedName) -> String? {
        let names = subject.flatMap { $0.filter { $0.type == .RDNAttributeType.commonName } }
        return names.last.flatMap { String($0.value) }
    }
}
