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

    /// Reads a bundle.
    ///
    /// Blocks of other kinds (parameters, requests) are ignored.
    /// - Throws: ``TrustError/Code/damaged`` if the text is not PEM, for an unreadable block, and for a second key.
    package init(pem: [UInt8], path: String) throws {
        guard let text = String(validating: pem, as: UTF8.self),
            let documents = try? PEMDocument.parseMultiple(pemString: text)
        else { throw TrustError(.damaged, "\(path) is not a PEM file") }
        certificates = []
        for document in documents {
            do {
                if document.discriminator == Certificate.defaultPEMDiscriminator {
                    certificates.append(try Certificate(pemDocument: document))
                } else if document.discriminator.hasSuffix("PRIVATE KEY") {
                    guard key == nil else { throw TrustError(.damaged, "\(path) has two private keys") }
                    key = try Certificate.PrivateKey(pemDocument: document)
                }
            } catch let error as TrustError {
                throw error
            } catch {
                // Without the library's message, which might quote a key.
                throw TrustError(.damaged, "the \(document.discriminator) in \(path) cannot be read")
            }
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
