import Crypto
import CryptoExtras
import Foundation
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
        case .AlgorithmIdentifier.idEcPublicKey?:
            guard let curve = DERElement(node)?.members.dropFirst().first else {
                self = .other
                return
            }
            self.init(curve: curve)
        case .AlgorithmIdentifier.rsaEncryption?: self = .rsa
        case Self.ed25519Identifier?: self = .ed25519
        default: self = .other
        }
    }

    /// RFC 8410 §3.
    private static let ed25519Identifier: ASN1ObjectIdentifier = [1, 3, 101, 112]

    /// - Parameter curve: `ECParameters` (RFC 5480 §2.1.1): a name, or the parameters themselves.
    init(curve: ASN1Node) {
        switch try? ASN1ObjectIdentifier(derEncoded: curve) {
        case .NamedCurves.secp256r1?: self = .p256
        case .NamedCurves.secp384r1?: self = .p384
        case .NamedCurves.secp521r1?: self = .p521
        case nil: self = .explicitCurve
        default: self = .other
        }
    }

    var isCurve: Bool { self == .p256 || self == .p384 || self == .p521 }

    package var description: String { rawValue }
}

/// A private key in PKCS#8 (RFC 5958), SEC 1 (RFC 5915) or PKCS#1 (RFC 8017), with or without attributes and public key.
package struct PEMPrivateKey: Sendable {
    let algorithm: KeyAlgorithm
    /// PKCS#8, PKCS#1 for RSA, or as it was for a kind that Herald does not know.
    package let der: [UInt8]

    /// Reads a key; `curve` is the DER of the file's EC PARAMETERS, for a key of SEC 1 that names no curve.
    /// - Returns: nil if it is damaged, or contradicts itself: in its version, curve or public key.
    static func read(_ element: DERElement, curve: [UInt8]?) -> PEMPrivateKey? {
        let members = element.members
        guard members.count > 1, let version = try? Int(derEncoded: members[0]) else { return nil }
        switch members[1].identifier {
        case .sequence: return (0...1).contains(version) ? readPKCS8(element) : nil
        case .octetString:
            guard let key = ECPrivateKey(element) else { return nil }
            guard let name = key.curve ?? curve.flatMap({ try? DER.parse($0) }) else {
                return PEMPrivateKey(algorithm: .other, der: element.encoded)
            }
            let algorithm = KeyAlgorithm(curve: name)
            guard algorithm.isCurve else { return PEMPrivateKey(algorithm: algorithm, der: element.encoded) }
            return key.pkcs8(algorithm).map { PEMPrivateKey(algorithm: algorithm, der: $0) }
        default:
            // Nine numbers of RSA, or the six of DSA.
            guard version == 0 else { return nil }
            return PEMPrivateKey(algorithm: members.count >= 9 ? .rsa : .other, der: element.encoded)
        }
    }

    private static func readPKCS8(_ element: DERElement) -> PEMPrivateKey? {
        let members = element.members
        let algorithm = KeyAlgorithm(members[1])
        let inner = members.count > 2 ? (try? ASN1OctetString(derEncoded: members[2])).map { Array($0.bytes) } : nil
        switch algorithm {
        case .p256, .p384, .p521:
            guard let key = ECPrivateKey(inner.flatMap { DERElement($0) }) else { return nil }
            guard key.curve.map({ KeyAlgorithm(curve: $0) == algorithm }) ?? true else { return nil }
            return key.pkcs8(algorithm).map { PEMPrivateKey(algorithm: algorithm, der: $0) }
        case .rsa:
            let key = inner.flatMap { DERElement($0) }.flatMap { read($0, curve: nil) }
            return key?.algorithm == .rsa ? key : nil
        case .ed25519, .other, .explicitCurve: return PEMPrivateKey(algorithm: algorithm, der: element.encoded)
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

/// A private key of an elliptic curve (RFC 5915 §3): the whole file, or the inner part of PKCS#8.
private struct ECPrivateKey {
    private let scalar: ArraySlice<UInt8>
    /// The curve's name or parameters; nil if only what surrounds the key names it.
    let curve: ASN1Node?
    private let publicKey: ArraySlice<UInt8>?

    init?(_ element: DERElement?) {
        guard let members = element?.members, members.count > 1, (try? Int(derEncoded: members[0])) == 1,
            let scalar = try? ASN1OctetString(derEncoded: members[1])
        else { return nil }
        func tagged(_ number: UInt) -> ASN1Node? {
            let identifier = ASN1Identifier(tagWithNumber: number, tagClass: .contextSpecific)
            guard case .constructed(let parts)? = members.first(where: { $0.identifier == identifier })?.content else {
                return nil
            }
            return Array(parts).first
        }
        self.scalar = scalar.bytes
        curve = tagged(0)
        publicKey = tagged(1).flatMap { (try? ASN1BitString(derEncoded: $0))?.bytes }
    }

    /// PKCS#8 of the key; nil if the scalar is none of the curve, or has another public key.
    ///
    /// Some tools write a scalar without its leading zeros.
    func pkcs8(_ algorithm: KeyAlgorithm) -> [UInt8]? {
        let bytes = scalar.drop { $0 == 0 }
        func padded(to size: Int) -> [UInt8] { Array(repeating: 0, count: max(0, size - bytes.count)) + bytes }
        switch algorithm {
        case .p256:
            guard let key = try? P256.Signing.PrivateKey(rawRepresentation: padded(to: 32)) else { return nil }
            return agrees(key.publicKey.x963Representation) ? Array(key.derRepresentation) : nil
        case .p384:
            guard let key = try? P384.Signing.PrivateKey(rawRepresentation: padded(to: 48)) else { return nil }
            return agrees(key.publicKey.x963Representation) ? Array(key.derRepresentation) : nil
        case .p521:
            guard let key = try? P521.Signing.PrivateKey(rawRepresentation: padded(to: 66)) else { return nil }
            return agrees(key.publicKey.x963Representation) ? Array(key.derRepresentation) : nil
        case .rsa, .ed25519, .other, .explicitCurve: return nil
        }
    }

    /// Whether the public key beside the scalar is that of the scalar; one in compressed form is not compared.
    private func agrees(_ own: Data) -> Bool {
        publicKey.map { $0.count != own.count || $0.elementsEqual(own) } ?? true
    }
}
