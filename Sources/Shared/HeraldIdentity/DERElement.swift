package import SwiftASN1

/// The structure of a DER element, by which certificates, keys and containers are told apart.
package struct DERElement {
    /// The structures that people mistake for each other.
    enum Structure: Hashable {
        case certificate
        case request
        case revocationList
        case publicKey
        case privateKey
        /// RFC 5958 §3.
        case encryptedKey
        /// RFC 7292: what Keychain Access exports.
        case pkcs12
        /// RFC 5652: certificates in a message.
        case pkcs7
        case other

        /// The label of its block; nil if it is none that Herald knows.
        var label: String? {
            switch self {
            case .certificate: "CERTIFICATE"
            case .request: "CERTIFICATE REQUEST"
            case .revocationList: "X509 CRL"
            case .publicKey: "PUBLIC KEY"
            case .privateKey: "PRIVATE KEY"
            case .encryptedKey: "ENCRYPTED PRIVATE KEY"
            case .pkcs12: "PKCS12"
            case .pkcs7: "PKCS7"
            case .other: nil
            }
        }
    }

    /// The bytes of the element; more may follow it.
    package let encoded: [UInt8]
    package let members: [ASN1Node]

    /// Reads the sequence at the beginning of the bytes; nil if there is none.
    package init?(_ bytes: [UInt8]) {
        guard let count = Self.count(bytes), count <= bytes.count, let node = try? DER.parse(bytes[..<count]),
            node.identifier == .sequence, case .constructed(let members) = node.content
        else { return nil }
        encoded = Array(bytes[..<count])
        self.members = Array(members)
    }

    package init?(_ node: ASN1Node?) {
        guard let node, node.identifier == .sequence, case .constructed(let members) = node.content else { return nil }
        encoded = Array(node.encodedBytes)
        self.members = Array(members)
    }

    /// Length of the element at the beginning, with its header (X.690 §8.1.3).
    private static func count(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 2 else { return nil }
        guard bytes[1] >= 0x80 else { return 2 + Int(bytes[1]) }
        let size = Int(bytes[1] & 0x7F)
        guard (1...4).contains(size), bytes.count >= 2 + size else { return nil }
        return 2 + size + bytes[2..<2 + size].reduce(0) { $0 << 8 | Int($1) }
    }

    /// The identifier in a member: an object identifier, or the first of a sequence.
    package func identifier(_ index: Int) -> ASN1ObjectIdentifier? {
        guard members.indices.contains(index) else { return nil }
        if let own = try? ASN1ObjectIdentifier(derEncoded: members[index]) { return own }
        return DERElement(members[index])?.members.first.flatMap { try? ASN1ObjectIdentifier(derEncoded: $0) }
    }

    var structure: Structure {
        let kinds = members.map(\.identifier)
        switch kinds.prefix(3) {
        case _ where identifier(0) == .signedData: return .pkcs7
        case _ where kinds.first == .integer && identifier(1) == .data: return .pkcs12
        case [.sequence, .octetString]: return .encryptedKey
        case [.sequence, .bitString]: return .publicKey
        case [.sequence, .sequence, .bitString] where kinds.count == 3: return signed
        // PKCS#8, SEC 1, and the many numbers of RSA and DSA.
        case [.integer, .sequence, .octetString], [.integer, .integer, .integer]: return .privateKey
        case _ where kinds.starts(with: [.integer, .octetString]): return .privateKey
        default: return .other
        }
    }
}

extension DERElement {
    /// The kind of an element with a signature: content, algorithm and signature.
    private var signed: Structure {
        let kinds = DERElement(members.first)?.members.map(\.identifier) ?? []
        // A list has times of its own (RFC 5280 §5.1), a request is short (RFC 2986 §4.1).
        if kinds.contains(.utcTime) || kinds.contains(.generalizedTime) { return .revocationList }
        return kinds.first == .integer && kinds.count <= 4 ? .request : .certificate
    }
}

extension ASN1ObjectIdentifier {
    /// `id-data` and `id-signedData` of RFC 5652.
    static let data: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 7, 1]
    static let signedData: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 7, 2]
}
