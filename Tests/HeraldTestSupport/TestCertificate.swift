import Crypto
import Foundation
import HeraldIdentity
package import HeraldModel
package import HeraldTrust
import SwiftASN1
package import X509

/// A valid peer certificate, apart from the faults that a test sets.
package struct TestCertificate {
    package var subject: [RelativeDistinguishedName.Attribute] = []
    package var names: [GeneralName] = []
    package var usages: [ExtendedKeyUsage.Usage]? = [.clientAuth]
    package var keyUsage: KeyUsage? = KeyUsage(digitalSignature: true)
    package var constraints: BasicConstraints? = .notCertificateAuthority
    package var extensions: [Certificate.Extension] = []
    package var begins = Duration.seconds(-3600)
    package var ends = Duration.seconds(86_400)
    package var key: Certificate.PrivateKey = Certificate.PrivateKey(P256.Signing.PrivateKey())
    package var serial = Certificate.SerialNumber(UInt64.random(in: 1 ... .max))
    /// Overrides the identifier of the authority's key; nil leaves it out.
    package var authorityKeyIdentifier: [UInt8]?? = nil
    package var version: Certificate.Version = .v3

    package init() {}

    /// A valid device certificate.
    package static func device(_ id: String) -> TestCertificate {
        var certificate = TestCertificate()
        certificate.names = [.uniformResourceIdentifier("urn:herald:device:" + id)]
        return certificate
    }

    /// A valid provider certificate.
    package static func provider(_ topic: String, team: String? = nil) -> TestCertificate {
        var certificate = TestCertificate()
        certificate.subject = [.init(type: [0, 9, 2342, 19_200_300, 100, 1, 1], utf8String: topic)]
        if let team {
            certificate.subject.append(.init(type: .RDNAttributeType.organizationalUnitName, utf8String: team))
        }
        certificate.extensions = [mark(1), mark(2)]
        return certificate
    }

    /// Apple's extension for an environment: 1 is sandbox, 2 is production.
    package static func mark(_ number: UInt) -> Certificate.Extension {
        Certificate.Extension(oid: [1, 2, 840, 113635, 100, 6, 3, number], critical: false, value: [0x05, 0x00])
    }

    /// Signs it with an authority's key; the name and key identifier of the authority's certificate are written into it.
    package func der(issuer: Certificate, signingKey: Certificate.PrivateKey, now: WallTime) throws -> [UInt8] {
        PEMBundle.der(try signed(issuer: issuer, signingKey: signingKey, now: now))
    }

    /// Signs it with an authority of a throw-away folder.
    package func der(_ trust: TestTrust, _ kind: PeerKind) throws -> [UInt8] {
        try der(
            issuer: trust.folder.authority(of: kind).certificate,
            signingKey: trust.signingKey(of: kind),
            now: trust.now
        )
    }

    package func signed(issuer: Certificate, signingKey: Certificate.PrivateKey, now: WallTime) throws -> Certificate {
        var list = Certificate.Extensions()
        if let constraints { try list.append(.init(constraints, critical: true)) }
        if let keyUsage { try list.append(.init(keyUsage, critical: true)) }
        if let usages { try list.append(.init(ExtendedKeyUsage(usages), critical: false)) }
        if !names.isEmpty { try list.append(.init(SubjectAlternativeNames(names), critical: false)) }
        let inherited = try issuer.extensions.subjectKeyIdentifier.map { Array($0.keyIdentifier) }
        if let identifier = authorityKeyIdentifier ?? inherited {
            try list.append(.init(AuthorityKeyIdentifier(keyIdentifier: identifier[...]), critical: false))
        }
        for one in extensions { try list.append(one) }
        return try Certificate(
            version: version,
            serialNumber: serial,
            publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSince1970: Double((now + begins).seconds)),
            notValidAfter: Date(timeIntervalSince1970: Double((now + ends).seconds)),
            issuer: issuer.subject,
            subject: DistinguishedName(subject),
            extensions: list,
            issuerPrivateKey: signingKey
        )
    }
}
