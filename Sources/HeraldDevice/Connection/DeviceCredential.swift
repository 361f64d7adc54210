import Foundation
public import HeraldModel
import HeraldTrust
import NIOSSL
import X509

/// A device's identity: its certificate and private key; the description shows only the identifier.
public struct DeviceCredential: Sendable {
    /// The device's identifier, from the certificate.
    public let id: DeviceID
    /// The end of the certificate's validity.
    let expires: WallTime
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey

    /// Reads an identity that `herald device enroll` has written: PEM with certificate, chain and private key.
    /// - Parameter pem: The content of the file.
    /// - Throws: ``DeviceError/Code/badIdentity``.
    public init(pem: [UInt8]) throws {
        guard let bundle = try? PEMBundle(pem: pem, path: "the identity"), let own = bundle.certificates.first,
            let chain = try? NIOSSLCertificate.fromPEMBytes(pem)
        else {
            throw DeviceError(.badIdentity, "the identity's file holds no certificate in PEM")
        }
        guard let id = DeviceCredential.id(of: own) else {
            throw DeviceError(.badIdentity, "the certificate is not a device's: it names no \(DeviceID.urnPrefix)<id>")
        }
        guard let key = try? NIOSSLPrivateKey(bytes: pem, format: .pem) else {
            throw DeviceError(.badIdentity, "the identity's file holds no private key: add it to the file, in PEM")
        }
        self.id = id
        expires = WallTime(seconds: Int64(own.notValidAfter.timeIntervalSince1970))
        self.chain = chain
        self.key = key
    }

    private static func id(of certificate: Certificate) -> DeviceID? {
        guard let names = try? certificate.extensions.subjectAlternativeNames else { return nil }
        for case .uniformResourceIdentifier(let name) in names where name.hasPrefix(DeviceID.urnPrefix) {
            return DeviceID(name.dropFirst(DeviceID.urnPrefix.count))
        }
        return nil
    }
}

extension DeviceCredential: CustomStringConvertible {
    /// The device's identifier.
    public var description: String { id.name }
}
