import SwiftASN1
package import X509

/// PKCS #7 message of certificates: a `SignedData` without signatures (RFC 2315 §9.1, RFC 5652 §5.1).
///
/// Enrollment over Secure Transport uses it (RFC 7030 §4.1.3, §4.2.3).
package enum CertificatesMessage {
    /// The most certificates of one message.
    package static let maximumCount = 16

    private static let zero = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)

    /// Encodes certificates (each DER) as a message, DER.
    package static func encode(_ certificates: [[UInt8]]) throws -> [UInt8] {
        var message = DER.Serializer()
        try message.appendConstructedNode(identifier: .sequence) { message in
            try message.serialize(ASN1ObjectIdentifier.signedData)
            try message.appendConstructedNode(identifier: zero) { content in
                try content.appendConstructedNode(identifier: .sequence) { signed in
                    try signed.serialize(1)
                    // No algorithms, no content, no signers.
                    signed.appendConstructedNode(identifier: .set) { _ in }
                    try signed.appendConstructedNode(identifier: .sequence) { content in
                        try content.serialize(ASN1ObjectIdentifier.data)
                    }
                    signed.appendConstructedNode(identifier: zero) { set in
                        // The members of a set are ordered by their bytes (X.690 §11.6).
                        for one in certificates.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
                            set.serializeRawBytes(one)
                        }
                    }
                    signed.appendConstructedNode(identifier: .set) { _ in }
                }
            }
        }
        return message.serializedBytes
    }

    /// Reads the certificates of a message (DER or BER); signatures are ignored.
    /// - Throws: ``TrustError/Code/damaged``.
    package static func decode(_ message: [UInt8]) throws -> [Certificate] {
        do {
            return try certificates(BER.parse(message))
        } catch {
            throw malformed
        }
    }

    private static func certificates(_ root: ASN1Node) throws -> [Certificate] {
        try DER.sequence(root, identifier: .sequence) { message in
            guard try ASN1ObjectIdentifier(derEncoded: &message) == .signedData else { throw malformed }
            return try DER.explicitlyTagged(&message, tagNumber: 0, tagClass: .contextSpecific) { node in
                try DER.sequence(node, identifier: .sequence) { try members(&$0) }
            }
        }
    }

    private static func members(_ signed: inout ASN1NodeCollection.Iterator) throws -> [Certificate] {
        // Version, algorithms, and content.
        for _ in 0..<3 where signed.next() == nil { throw malformed }
        var found: [Certificate] = []
        while let node = signed.next() {
            // Certificates; revocation lists and signers are ignored.
            guard node.identifier == zero, case .constructed(let nodes) = node.content else { continue }
            for node in nodes {
                found.append(try Certificate(derEncoded: node))
                guard found.count <= maximumCount else { throw malformed }
            }
        }
        return found
    }

    private static var malformed: TrustError {
        TrustError(.damaged, "the answer is not a PKCS #7 message of certificates")
    }
}
