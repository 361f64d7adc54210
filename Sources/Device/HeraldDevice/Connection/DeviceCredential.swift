import Foundation
import HeraldIdentity
public import HeraldModel
import NIOSSL
import SwiftASN1
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
        do {
            let file = try PEMFile(pem)
            let (certificates, key) = try file.identity()
            guard let own = try certificates.first.map({ try Certificate(derEncoded: $0) }),
                let id = DeviceCredential.id(of: own)
            else {
                throw DeviceError(
                    .badIdentity,
                    "the certificate is not a device's: it names no \(DeviceID.urnPrefix)<id>"
                )
            }
            self.id = id
            expires = WallTime(seconds: Int64(own.notValidAfter.timeIntervalSince1970))
            chain = try NIOSSLCertificate.all(certificates)
            do {
                self.key = try NIOSSLPrivateKey(bytes: key.der, format: .der)
            } catch {
                throw PEMFault.unusable("private key")
            }
        } catch let error as DeviceError {
            throw error
        } catch {
            let fault = error as? PEMFault ?? PEMFault.unusable("certificate")
            throw DeviceError(.badIdentity, "the identity's file cannot be used: \(fault)")
        }
    }

    private static func id(of certificate: Certificate) -> DeviceID? {
        guard let names = try? certificate.extensions.subjectAlternativeNames else { return nil }
        for case .uniformResourceIdentifier(let name) in names where name.hasPrefix(DeviceID.urnPrefix) {
            return DeviceID(name.dropFirst(DeviceID.urnPrefix.count))
        }
        return nil
    }
}

extension NIOSSLCertificate {
    /// The certificates of authorities in a PEM file.
    /// - Throws: `PEMFault`.
    static func authorities(_ pem: [UInt8]) throws(PEMFault) -> [NIOSSLCertificate] {
        try all(try PEMFile(pem).certificates())
    }

    fileprivate static func all(_ certificates: [[UInt8]]) throws(PEMFault) -> [NIOSSLCertificate] {
        do {
            return try certificates.map { try NIOSSLCertificate(bytes: $0, format: .der) }
        } catch {
            throw PEMFault.unusable("certificate")
        }
    }
}

extension DeviceCredential: CustomStringConvertible {
    /// The device's identifier.
    public var description: String { id.name }
}
