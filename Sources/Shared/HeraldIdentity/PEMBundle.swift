import Foundation
import SwiftASN1
package import X509

/// A PEM file of certificates and at most one private key.
///
/// Herald writes the certificate, its chain, and the private key, in that order, and reads any order.
package struct PEMBundle: Sendable {
    package var certificates: [Certificate]
    package var key: Certificate.PrivateKey?

    package init(certificates: [Certificate], key: Certificate.PrivateKey? = nil) {
        self.certificates = certificates
        self.key = key
    }

    /// Reads a bundle with at least one certificate.
    ///
    /// Blocks of other kinds (parameters, requests) are ignored.
    /// - Throws: ``TrustError/Code/damaged`` with the path.
    package init(pem: [UInt8], path: String) throws {
        do {
            let file = try PEMFile(pem)
            guard file.hasPrivateKey else {
                certificates = try file.certificates().map { try Certificate(derEncoded: $0) }
                return
            }
            let identity = try file.identity()
            certificates = try identity.certificates.map { try Certificate(derEncoded: $0) }
            key = identity.key.certificateKey
            guard key != nil else { throw PEMFault("its private key is of a kind that no certificate here can have") }
        } catch let fault as PEMFault {
            throw TrustError(.damaged, "\(path) cannot be used: \(fault)")
        } catch {
            // Without the library's message, which might quote a key.
            throw TrustError(.damaged, "\(path) cannot be used: one of its certificates cannot be read")
        }
    }

    /// The bundle as PEM text.
    package func pem() throws -> String {
        var blocks = try certificates.map { try $0.serializeAsPEM().pemString }
        if let key { blocks.append(try key.serializeAsPEM().pemString) }
        return blocks.map { $0 + "\n" }.joined()
    }

    /// A certificate's DER.
    package static func der(_ certificate: Certificate) -> [UInt8] {
        var serializer = DER.Serializer()
        do {
            try serializer.serialize(certificate)
        } catch {
            // Cannot happen: a certificate keeps its encoded bytes.
            return []
        }
        return serializer.serializedBytes
    }
}
