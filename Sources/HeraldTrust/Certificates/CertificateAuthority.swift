import Crypto
import Foundation
package import HeraldModel
import SwiftASN1
package import X509

/// An authority of the service: signs certificates, and the list of those that are revoked.
package struct CertificateAuthority: Sendable {
    /// Its self-signed certificate, which is the one trust root of a door.
    package let certificate: Certificate
    /// Nil where users brought an authority of their own and keep its key elsewhere.
    private let key: Certificate.PrivateKey?

    private static let lifetime = Duration.seconds(20 * 365 * 86_400)
    /// Certificates begin some time before they are made, for peers whose clocks are behind.
    static let backdating = Duration.seconds(3600)

    /// From when on a certificate is good.
    ///
    /// Peers and TLS libraries judge it by the clocks of their machines, whatever the service's own says: one that is made
    /// while that clock is ahead must not seem to begin in the future.
    private static func begin(at now: WallTime) -> WallTime {
        min(now, WallTime(Date())) - backdating
    }

    /// Makes an authority with a new P-256 key.
    ///
    /// Authorities of different services have different names, because peers are told apart by the issuer that their
    /// certificates name.
    static func make(name: String, now: WallTime) throws -> CertificateAuthority {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let subject = try DistinguishedName([
            .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
            .init(type: .RDNAttributeType.commonName, utf8String: name),
        ])
        let keyID = SubjectKeyIdentifier(hash: key.publicKey)
        let extensions = try Certificate.Extensions {
            // No authority below it: what it signs is a leaf.
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            keyID
        }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: SerialText.newSerial(),
            publicKey: key.publicKey,
            notValidBefore: Date(begin(at: now)),
            notValidAfter: Date(now + lifetime),
            issuer: subject,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: key
        )
        return CertificateAuthority(certificate: certificate, key: key)
    }

    private init(certificate: Certificate, key: Certificate.PrivateKey?) {
        self.certificate = certificate
        self.key = key
    }

    /// Reads an authority from its PEM file: the certificate, and its key if it is there.
    /// - Throws: ``TrustError/Code/damaged``.
    init(bundle: PEMBundle, path: String) throws {
        guard let certificate = bundle.certificates.first, bundle.certificates.count == 1 else {
            throw TrustError(.damaged, "\(path) should hold one certificate: restore it from a backup")
        }
        guard case .isCertificateAuthority = try? certificate.extensions.basicConstraints else {
            throw TrustError(.damaged, "the certificate in \(path) is not an authority's")
        }
        if let key = bundle.key, key.publicKey != certificate.publicKey {
            throw TrustError(.damaged, "the key in \(path) is not that of its certificate: restore it from a backup")
        }
        self.init(certificate: certificate, key: bundle.key)
    }

    /// Certificate and key, as they are kept.
    func bundle() -> PEMBundle {
        PEMBundle(certificates: [certificate], key: key)
    }

    /// Whether it can sign.
    package var canSign: Bool { key != nil }

    /// The certificate's DER.
    package var der: [UInt8] {
        PEMBundle.der(certificate)
    }

    package var expires: WallTime {
        WallTime(certificate.notValidAfter)
    }

    /// The identifier of its key (RFC 5280 §4.2.1.2), where its certificate says it.
    var keyIdentifier: ArraySlice<UInt8>? {
        (try? certificate.extensions.subjectKeyIdentifier)?.keyIdentifier
    }

    /// Signs a certificate for a peer or a server.
    ///
    /// It ends with the authority at the latest. `extensions` are those beside what every certificate of ours has.
    /// - Throws: ``TrustError/Code/noSigningKey``, or what the library throws.
    func issue(
        subject: DistinguishedName,
        publicKey: Certificate.PublicKey,
        usage: ExtendedKeyUsage.Usage,
        names: [GeneralName],
        extensions extra: [Certificate.Extension] = [],
        now: WallTime,
        lifetime: Duration
    ) throws -> Certificate {
        let key = try signingKey()
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true))
            try ExtendedKeyUsage([usage])
            SubjectKeyIdentifier(hash: publicKey)
            AuthorityKeyIdentifier(keyIdentifier: keyIdentifier)
        }
        if !names.isEmpty { try extensions.append(.init(SubjectAlternativeNames(names), critical: false)) }
        for one in extra { try extensions.append(one) }
        return try Certificate(
            version: .v3,
            serialNumber: SerialText.newSerial(),
            publicKey: publicKey,
            notValidBefore: Date(CertificateAuthority.begin(at: now)),
            notValidAfter: min(Date(now + lifetime), certificate.notValidAfter),
            issuer: certificate.subject,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: key
        )
    }

    /// Signs other things than certificates: revocation lists.
    /// - Returns: The signature, and the algorithm that made it.
    func sign(_ bytes: [UInt8]) throws -> (Certificate.Signature, Certificate.SignatureAlgorithm) {
        let key = try signingKey()
        guard let algorithm = SignatureNames.best(of: key.supportedSignatureAlgorithms) else {
            throw TrustError(.noSigningKey, "the key of \(certificate.subject) makes no signature that Herald reads")
        }
        return (try key.sign(bytes: bytes, signatureAlgorithm: algorithm), algorithm)
    }

    private func signingKey() throws -> Certificate.PrivateKey {
        guard let key else {
            throw TrustError(
                .noSigningKey,
                "the key of the authority \(certificate.subject) is not here: issue and revoke where it is kept"
            )
        }
        return key
    }
}

extension Date {
    /// A moment, to the second, as certificates have it.
    init(_ moment: WallTime) {
        self.init(timeIntervalSince1970: Double(moment.seconds))
    }
}

extension WallTime {
    /// The moment of a date of a certificate.
    init(_ date: Date) {
        self.init(seconds: Int64(date.timeIntervalSince1970.rounded()))
    }
}
