import Crypto
import CryptoExtras
import HeraldIdentity
package import HeraldModel
import SwiftASN1
import X509

/// The content of a certificate or of a certificate signing request, for people.
package struct CertificateReading: Hashable, Sendable {
    package enum Kind: String, Sendable {
        case certificate
        case request
    }

    package let kind: Kind
    package let subject: String
    /// The key's algorithm and size.
    package let key: String
    /// The following are nil for a request.
    package private(set) var issuer: String?
    package private(set) var serial: String?
    package private(set) var begins: WallTime?
    package private(set) var ends: WallTime?
    package private(set) var topics: [Topic] = []
    /// The environments that its extensions name.
    package private(set) var environments: [PushEnvironment] = []
    package private(set) var der: [UInt8] = []

    /// Reads the certificates and requests of a PEM text.
    /// - Throws: ``TrustError/Code/badRequest`` for a private key, and for a text without either.
    package static func all(pem: [UInt8]) throws -> [CertificateReading] {
        let file: PEMFile
        do {
            file = try PEMFile(pem)
        } catch {
            throw TrustError(.badRequest, "the text cannot be used: \(error)")
        }
        if file.hasPrivateKey {
            throw TrustError(
                .badRequest,
                "the text has a private key, which belongs nowhere but to its provider: send the certificate alone"
            )
        }
        let read = file.blocks.compactMap { block -> CertificateReading? in
            guard let der = block.der else { return nil }
            if let certificate = try? Certificate(derEncoded: der) { return CertificateReading(certificate) }
            return (try? CertificateSigningRequest(derEncoded: der)).map { CertificateReading($0) }
        }
        guard !read.isEmpty else {
            throw TrustError(.badRequest, "the text has neither a certificate nor a certificate signing request")
        }
        return read
    }

    private init(_ request: CertificateSigningRequest) {
        kind = .request
        subject = "\(request.subject)"
        key = Self.words(request.publicKey)
    }

    private init(_ certificate: Certificate) {
        kind = .certificate
        subject = "\(certificate.subject)"
        key = Self.words(certificate.publicKey)
        issuer = "\(certificate.issuer)"
        serial = SerialNumberText.text(certificate.serialNumber)
        begins = WallTime(certificate.notValidBefore)
        ends = WallTime(certificate.notValidAfter)
        var topics: Set<Topic> = []
        for oid in [AppleExtensions.topics, AppleExtensions.voipTopics] {
            let found = certificate.extensions[oid: oid].flatMap { AppleExtensions.topicList($0.value) }
            topics.formUnion(found ?? [])
        }
        let names = certificate.subject.flatMap { $0.filter { $0.type == AppleExtensions.userID } }
        if topics.isEmpty, let name = names.first.flatMap({ String($0.value) }), let topic = Topic(name) {
            topics = [topic]
        }
        self.topics = topics.sorted { $0.name < $1.name }
        if certificate.extensions[oid: AppleExtensions.production] != nil { environments.append(.production) }
        if certificate.extensions[oid: AppleExtensions.sandbox] != nil { environments.append(.sandbox) }
        der = PEMBundle.der(certificate)
    }

    private static func words(_ key: Certificate.PublicKey) -> String {
        if let rsa = _RSA.Signing.PublicKey(key) { return "RSA \(rsa.keySizeInBits)" }
        if P256.Signing.PublicKey(key) != nil { return "P-256" }
        if P384.Signing.PublicKey(key) != nil { return "P-384" }
        if P521.Signing.PublicKey(key) != nil { return "P-521" }
        return "another kind"
    }
}
