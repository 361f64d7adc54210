import Crypto
import HeraldIdentity
import HeraldModel
import SwiftASN1
import X509

/// A private key, which never leaves the device.
struct DeviceKey: Sendable {
    private let key: P256.Signing.PrivateKey

    /// Makes a new key.
    init() { key = P256.Signing.PrivateKey() }

    /// Reads ``pem``; nil for anything else.
    init?(pem: [UInt8]) {
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: String(decoding: pem, as: UTF8.self)) else {
            return nil
        }
        self.key = key
    }

    var pem: [UInt8] { Array((key.pemRepresentation + "\n").utf8) }

    var publicKey: Certificate.PublicKey { Certificate.PublicKey(key.publicKey) }

    /// The request for a first certificate (RFC 2986, DER).
    func request(name: String) throws -> [UInt8] {
        let subject = try DistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: name)])
        return try request(subject: subject, names: nil)
    }

    /// The request for the next certificate, with the names of the present one (RFC 7030 §4.2.2).
    func request(following present: Certificate) throws -> [UInt8] {
        try request(subject: present.subject, names: try present.extensions.subjectAlternativeNames)
    }

    private func request(subject: DistinguishedName, names: SubjectAlternativeNames?) throws -> [UInt8] {
        var attributes: [CertificateSigningRequest.Attribute] = []
        if let names {
            let extensions = try Certificate.Extensions([Certificate.Extension(names, critical: false)])
            attributes.append(try .init(ExtensionRequest(extensions: extensions)))
        }
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: subject,
            privateKey: Certificate.PrivateKey(key),
            attributes: CertificateSigningRequest.Attributes(attributes),
            signatureAlgorithm: .ecdsaWithSHA256
        )
        var serializer = DER.Serializer()
        try serializer.serialize(request)
        return serializer.serializedBytes
    }

    /// Checks an issued certificate, and joins it with its issuer and this key.
    func identity(
        from answer: [Certificate],
        authorities: [Certificate],
        expected: DeviceID?
    ) throws -> (pem: [UInt8], credential: DeviceCredential) {
        guard let own = answer.first(where: { $0.publicKey == publicKey }) else {
            throw EnrollmentError(.badAnswer, "the issued certificate is not for this device's key")
        }
        guard let issuer = authorities.first(where: { DeviceKey.signed($0, own) }) else {
            throw EnrollmentError(
                .badAnswer,
                "the issued certificate is not signed by any of the service's authorities"
            )
        }
        guard (try? own.extensions.extendedKeyUsage)?.contains(.clientAuth) == true else {
            throw EnrollmentError(.badAnswer, "the issued certificate is not for TLS clients")
        }
        let text = try PEMBundle(certificates: [own, issuer], key: Certificate.PrivateKey(key)).pem()
        let credential: DeviceCredential
        do {
            credential = try DeviceCredential(pem: Array(text.utf8))
        } catch {
            throw EnrollmentError(.badAnswer, "the issued certificate cannot be used: \(error)")
        }
        guard expected.map({ $0 == credential.id }) ?? true else {
            throw EnrollmentError(.badAnswer, "the issued certificate is for another device")
        }
        return (Array(text.utf8), credential)
    }

    private static func signed(_ authority: Certificate, _ certificate: Certificate) -> Bool {
        guard case .isCertificateAuthority = try? authority.extensions.basicConstraints else { return false }
        return certificate.issuer == authority.subject
            && authority.publicKey.isValidSignature(certificate.signature, for: certificate)
    }
}
