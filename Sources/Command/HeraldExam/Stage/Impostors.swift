import Crypto
import HeraldIdentity
import HeraldModel
import HeraldService
import HeraldTrust
import X509

/// Certificates that a sender must refuse, as chains and keys in PEM.
struct Impostors: Sendable {
    /// Of an authority that it does not know, for the names by which senders find the service.
    let unknown: [UInt8]
    /// Of an authority that it knows, for another name.
    ///
    /// The service would replace one that its own authority signed.
    let misnamed: [UInt8]
    /// The file of the authorities that a sender trusts: the service's, and the one of ``misnamed``.
    let authorityPath: String

    /// Makes them, or reads the one of an authority that a server behind a hook knows since an earlier exam.
    init(in folder: String, _ trust: TrustFolder, hosts: [String], now: WallTime) throws {
        let path = "\(folder)/exam-other-name.pem"
        authorityPath = "\(folder)/exam-ca.pem"
        unknown = try Self.issue(hosts, by: Self.authority("not to be trusted", now), now)
        if let former = try? SafeFile.read(path) {
            misnamed = former
        } else {
            misnamed = try Self.issue(["other.example.com"], by: Self.authority("other names", now), now)
            try SafeFile.write(misnamed, to: path, mode: 0o600)
        }
        let other = try PEMBundle(pem: misnamed, path: path).certificates.suffix(1)
        let pem = try PEMBundle(certificates: [trust.root.certificate] + other).pem()
        try SafeFile.write(Array(pem.utf8), to: authorityPath, mode: 0o644)
    }

    private static func authority(_ name: String, _ now: WallTime) throws -> CertificateAuthority {
        try CertificateAuthority.make(name: "Herald Exam, \(name)", now: now)
    }

    private static func issue(_ names: [String], by authority: CertificateAuthority, _ now: WallTime) throws -> [UInt8]
    {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let certificate = try authority.issue(
            subject: DistinguishedName { CommonName(names.first ?? "") },
            publicKey: key.publicKey,
            usage: .serverAuth,
            names: names.map { .dnsName($0) },
            now: now,
            lifetime: .seconds(820 * 86_400)
        )
        return Array(try PEMBundle(certificates: [certificate, authority.certificate], key: key).pem().utf8)
    }
}
