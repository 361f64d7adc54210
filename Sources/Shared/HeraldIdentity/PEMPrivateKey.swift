import Crypto
import CryptoExtras
package import SwiftASN1
package import X509

/// The algorithm and curve of a key, as an AlgorithmIdentifier names it (RFC 5280 §4.1.1.2).
package enum KeyAlgorithm: String, CustomStringConvertible {
    case p256 = "P-256"
    case p384 = "P-384"
    case p521 = "P-521"
    case rsa = "RSA"
    case ed25519 = "Ed25519"
    case other = "another kind"
    /// A curve that is not named, but described.
    case explicitCurve = "a curve with explicit parameters"

    package init(_ node: ASN1Node?) {
        let identifiers = (DERElement(node)?.members ?? []).map { try? ASN1ObjectIdentifier(derEncoded: $0) }
        switch identifiers.first ?? nil {
        case .AlgorithmIdentifier.idEcPublicKey? where identifiers.count == 2 && identifiers[1] == nil:
            self = .explicitCurve
        case .AlgorithmIdentifier.idEcPublicKey?: self.init(curve: identifiers.dropFirst().first ?? nil)
        case .AlgorithmIdentifier.rsaEncryption?: self = .rsa
        case Self.ed25519Identifier?: self = .ed25519
        default: self = .other
        }
    }

    /// RFC 8410 §3.
    private static let ed25519Identifier: ASN1ObjectIdentifier = [1, 3, 101, 112]

    /// - Parameter curve: nil for parameters that are not a name.
    init(curve: ASN1ObjectIdentifier?) {
        switch curve {
        case .NamedCurves.secp256r1: self = .p256
        case .NamedCurves.secp384r1: self = .p384
        case .NamedCurves.secp521r1: self = .p521
        default: self = .other
        }
    }

    package var description: String { rawValue }
}

/// A private key in PKCS#8 (RFC 5958), SEC 1 (RFC 5915) or PKCS#1 (RFC 8017), with or without attributes and public key.
package struct PEMPrivateKey: Sendable {
    let algorithm: KeyAlgorithm
    /// PKCS#8, PKCS#1 for RSA, or as it was for a kind that Herald does not know.
    package let der: [UInt8]

    /// Reads a key.
    /// - Parameters:
    ///   - element: The key.
    ///   - curve: DER of the file's EC PARAMETERS, for a key of SEC 1 that names no curve.
    /// - Returns: nil if it is damaged.
    static func read(_ element: DERElement, curve: [UInt8]?) -> PEMPrivateKey? {
        let members = element.members
        guard members.count > 1 else { return nil }
        guard members[1].identifier == .sequence else {
            return readLegacy(element, curve: curve.flatMap { try? ASN1ObjectIdentifier(derEncoded: $0) })
        }
        let algorithm = KeyAlgorithm(members[1])
        let inner = members.count > 2 ? (try? ASN1OctetString(derEncoded: members[2])).map { Array($0.bytes) } : nil
        switch algorithm {
        case .p256, .p384, .p521:
            guard let own = inner.flatMap({ DERElement($0) })?.members, own.count > 1 else { return nil }
            return pkcs8(algorithm, scalar: own[1]).map { PEMPrivateKey(algorithm: algorithm, der: $0) }
        case .rsa: return inner.map { PEMPrivateKey(algorithm: algorithm, der: $0) }
        case .ed25519, .other, .explicitCurve: return PEMPrivateKey(algorithm: algorithm, der: element.encoded)
        }
    }

    /// Reads a key of SEC 1 or PKCS#1.
    private static func readLegacy(_ element: DERElement, curve: ASN1ObjectIdentifier?) -> PEMPrivateKey {
        guard element.members[1].identifier == .octetString else {
            // Nine numbers of RSA, or the six of DSA.
            return PEMPrivateKey(algorithm: element.members.count >= 9 ? .rsa : .other, der: element.encoded)
        }
        var curve = curve
        for member in element.members.dropFirst(2) where member.identifier == Self.parameters {
            guard case .constructed(let parts) = member.content, let own = Array(parts).first else { continue }
            guard let named = try? ASN1ObjectIdentifier(derEncoded: own) else {
                return PEMPrivateKey(algorithm: .explicitCurve, der: element.encoded)
            }
            curve = named
        }
        let algorithm = KeyAlgorithm(curve: curve)
        return PEMPrivateKey(
            algorithm: algorithm,
            der: pkcs8(algorithm, scalar: element.members[1]) ?? element.encoded
        )
    }

    /// `parameters [0]` of an ECPrivateKey.
    private static let parameters = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)

    /// PKCS#8 of a private scalar, which some tools write without its leading zeros.
    private static func pkcs8(_ algorithm: KeyAlgorithm, scalar node: ASN1Node) -> [UInt8]? {
        guard let bytes = (try? ASN1OctetString(derEncoded: node))?.bytes.drop(while: { $0 == 0 }) else { return nil }
        func padded(to size: Int) -> [UInt8] { Array(repeating: 0, count: max(0, size - bytes.count)) + bytes }
        return switch algorithm {
        case .p256:
            (try? P256.Signing.PrivateKey(rawRepresentation: padded(to: 32))).map { Array($0.derRepresentation) }
        case .p384:
            (try? P384.Signing.PrivateKey(rawRepresentation: padded(to: 48))).map { Array($0.derRepresentation) }
        case .p521:
            (try? P521.Signing.PrivateKey(rawRepresentation: padded(to: 66))).map { Array($0.derRepresentation) }
        case .rsa, .ed25519, .other, .explicitCurve: nil
        }
    }

    /// The key as PEM that every tool reads.
    package var text: [UInt8] {
        Array(PEMFile.text(algorithm == .rsa ? "RSA PRIVATE KEY" : "PRIVATE KEY", der: der).utf8)
    }

    /// The key for X.509; nil for a kind that the library does not know.
    package var certificateKey: Certificate.PrivateKey? {
        if algorithm == .rsa { return (try? _RSA.Signing.PrivateKey(derRepresentation: der)).map { .init($0) } }
        return try? Certificate.PrivateKey(derBytes: der)
    }
}
