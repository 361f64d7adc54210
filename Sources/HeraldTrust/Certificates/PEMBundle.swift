import Foundation
import SwiftASN1
package import X509

/// A PEM file of certificates and at most one private key.
///
/// One made by Herald holds the certificate, its chain, and the private key, in that order; any order is read.
package struct PEMBundle: Sendable {
    package var certificates: [Certificate]
    package var key: Certificate.PrivateKey?

    package init(certificates: [Certificate], key: Certificate.PrivateKey? = nil) {
        self.certificates = certificates
        self.key = key
    }

    /// Reads a bundle.
    ///
    /// Blocks of other kinds (parameters, requests) are passed over.
    /// - Throws: ``TrustError/Code/damaged`` for what is no PEM, an unreadable block, or a second key.
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
                    guard key == nil else { throw TrustError(.damaged, "\(path) holds two private keys") }
                    key = try Certificate.PrivateKey(pemDocument: document)
                }
            } catch let error as TrustError {
                throw error
            } catch {
                // What the library says of a key might quote it.
                throw TrustError(.damaged, "the \(document.discriminator) in \(path) cannot be read")
            }
        }
    }

    /// The bundle as text, every block ending in a line feed.
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
            // A certificate is written from the bytes that it was read from, or was signed as.
            return []
        }
        return serializer.serializedBytes
    }
}
