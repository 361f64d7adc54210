import HeraldIdentity
import SwiftASN1
import X509

/// The reason for which a certificate signing request (RFC 2986 §4) cannot be used: a sentence about "it".
enum RequestFault: Hashable, CustomStringConvertible {
    case damaged
    /// BoringSSL accepts no client certificate with this key by default.
    case key(KeyAlgorithm)
    case size(bits: Int)
    /// Of a kind whose name follows; nil for one that Herald does not know.
    case signature(String?)

    /// Finds the fault that the request's algorithms show; nil if there is none.
    init?(_ der: [UInt8]) {
        let request = DERElement(der)
        let content = DERElement(request?.members.first)?.members ?? []
        guard let request, content.count > 2, let key = DERElement(content[2])?.members, let bits = key.last,
            let signature = request.identifier(1)
        else {
            self = .damaged
            return
        }
        let algorithm = KeyAlgorithm(key.first)
        switch algorithm {
        case .p256, .p384: break
        case .rsa:
            let size = Self.modulusBits(bits)
            guard (2048...8192).contains(size) else {
                self = .size(bits: size)
                return
            }
        default:
            self = .key(algorithm)
            return
        }
        // ECDSA and RSA, each with SHA-256, SHA-384 and SHA-512; a key of Ed25519 was refused above.
        if let known = SignatureAlgorithms.algorithm(signature), known != .ed25519 { return nil }
        self = .signature(Self.names[signature])
    }

    var description: String {
        switch self {
        case .damaged: "it is damaged"
        case .key(let algorithm): "its key is of \(algorithm), and one of P-256, P-384 or RSA is needed"
        case .size(let bits): "its RSA key has \(bits) bits, and 2048 to 8192 are needed"
        case .signature(let name):
            "it is signed with \(name ?? "an algorithm that Herald does not take"): "
                + "sign it with SHA-256 (`openssl req -sha256`)"
        }
    }

    private static let names: [ASN1ObjectIdentifier: String] = [
        [1, 2, 840, 10045, 4, 1]: "SHA-1", [1, 2, 840, 113_549, 1, 1, 5]: "SHA-1", [1, 3, 14, 3, 2, 29]: "SHA-1",
        [1, 2, 840, 113_549, 1, 1, 4]: "MD5", [1, 2, 840, 113_549, 1, 1, 10]: "RSA-PSS",
        [1, 2, 840, 10045, 4, 3, 1]: "SHA-224", [1, 2, 840, 113_549, 1, 1, 14]: "SHA-224",
    ]

    /// Length of the modulus of an RSA key (RFC 8017 §A.1.1).
    private static func modulusBits(_ key: ASN1Node) -> Int {
        guard let bits = try? ASN1BitString(derEncoded: key),
            case .primitive(let number)? = DERElement(Array(bits.bytes))?.members.first?.content
        else { return 0 }
        let digits = number.drop { $0 == 0 }
        return digits.count * 8 - (digits.first?.leadingZeroBitCount ?? 0)
    }
}
