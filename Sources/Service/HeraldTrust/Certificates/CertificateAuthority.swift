import Crypto
import Foundation
import HeraldIdentity
package import HeraldModel
import SwiftASN1
package import X509

/// An authority of the service: signs certificates and revocation lists.
package struct CertificateAuthority: Sendable {
    /// The self-signed certificate, which is the only trust root of a listener.
    package let certificate: Certificate
    /// Nil if users provided their own authority and keep its key elsewhere.
    private let key: Certificate.PrivateKey?

    private static let lifetime = Duration.seconds(20 * 365 * 86_400)
    /// Certificates are valid some time before they are issued, for peers whose clocks are behind.
    static let backdating = Duration.seconds(3600)

    /// Start of a certificate's validity.
    ///
    /// Peers and TLS libraries use their machines' clocks. If the service's clock is ahead, the machine's time counts, so that
    /// the certificate is not of the future.
    private static func begin(at now: WallTime) -> WallTime {
        min(now, WallTime(Date())) - backdating
    }

    /// Makes an authority with a new P-256 key.
    ///
    /// Authorities of different services have different names, because a certificate names its issuer.
    package static func make(name: String, now: WallTime) throws -> CertificateAuthority {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let subject = try DistinguishedName([
            .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
            .init(type: .RDNAttributeType.commonName, utf8String: name),
        ])
        let keyID = SubjectKeyIdentifier(hash: key.publicKey)
        let extensions = try Certificate.Extensions {
            // It signs leaf certificates only.
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            keyID
        }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: SerialNumberText.newSerial(),
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

    /// Reads an authority from its PEM file: the certificate, and its key if present.
    /// - Throws: ``TrustError/Code/damaged``.
    init(bundle: PEMBundle, path: String) throws {
        guard let certificate = bundle.certificates.first, bundle.certificates.count == 1 else {
            throw TrustError(.damaged, "\(path) must have exactly one certificate: \(TrustError.copyFromBackup)")
        }
        guard case .isCertificateAuthority = try? certificate.extensions.basicConstraints else {
            throw TrustError(.damaged, "the certificate in \(path) is not a certificate authority")
        }
        self.init(certificate: certificate, key: bundle.key)
    }

    /// Certificate and key, as in the file.
    func bundle() -> PEMBundle {
        PEMBundle(certificates: [certificate], key: key)
    }

    package var canSign: Bool { key != nil }

    /// The certificate's DER.
    package var der: [UInt8] {
        PEMBundle.der(certificate)
    }

    package var expires: WallTime {
        WallTime(certificate.notValidAfter)
    }

    /// The identifier of its key (RFC 5280 §4.2.1.2), if its certificate has one.
    var keyIdentifier: ArraySlice<UInt8>? {
        (try? certificate.extensions.subjectKeyIdentifier)?.keyIdentifier
    }

    /// Signs a certificate for a peer or a server.
    ///
    /// It expires with the authority at the latest. `extensions` are added to those of every certificate.
    /// - Throws: ``TrustError/Code/noSigningKey``, or an error of the library.
    package func issue(
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
            serialNumber: SerialNumberText.newSerial(),
            publicKey: publicKey,
            notValidBefore: Date(CertificateAuthority.begin(at: now)),
            notValidAfter: min(Date(now + lifetime), certificate.notValidAfter),
            issuer: certificate.subject,
            subject: subject,
            extensions: extensions,
            issuerPrivateKey: key
        )
    }

    /// Signs a revocation list.
    /// - Returns: The signature and its algorithm.
    func sign(_ bytes: [UInt8]) throws -> (Certificate.Signature, Certificate.SignatureAlgorithm) {
        let key = try signingKey()
        guard let algorithm = SignatureAlgorithms.best(of: key.supportedSignatureAlgorithms) else {
            throw TrustError(
                .noSigningKey,
                "the key of \(certificate.subject) supports no signature algorithm that Herald reads"
            )
        }
        return (try key.sign(bytes: bytes, signatureAlgorithm: algorithm), algorithm)
    }

    private func signingKey() throws -> Certificate.PrivateKey {
        guard let key else {
            throw TrustError(
                .noSigningKey,
                "the key of the authority \(certificate.subject) is not in this folder: issue and revoke where the key is"
            )
        }
        return key
    }
}

extension Date {
    /// A time of a certificate, to the second.
    init(_ moment: WallTime) {
        self.init(timeIntervalSince1970: Double(moment.seconds))
    }
}

extension WallTime {
    /// The time of a certificate's date.
    init(_ date: Date) {
        self.init(seconds: Int64(date.timeIntervalSince1970.rounded()))
    }
}
