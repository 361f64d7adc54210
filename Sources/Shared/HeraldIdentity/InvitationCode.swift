import Crypto

/// The code of an invitation: a secret that works once, and a fingerprint by which the device recognizes the service.
///
/// It has 45 characters in groups of five. 26 are the first 128 bits of the SHA-256 of the service's authority, which match
/// the strength of its P-256 key. 17 are a secret of 85 bits, and two are a checksum. The alphabet is Crockford's base 32:
/// digits and upper-case characters without I, L, O and U. The parser ignores case, blanks and hyphens, and reads O as 0, I
/// and L as 1.
package struct InvitationCode: Hashable, Sendable {
    /// The reason why a text is not a code.
    package enum ParseError: Error, Hashable, Sendable {
        /// The number of characters is not ``length``.
        case length(Int)
        /// An invalid character, at a position counted from one.
        case character(Int)
        /// The checksum is wrong: a character is mistyped.
        case checksum
        /// A newer version of Herald made the code.
        case version
    }

    /// Length of the fingerprint in a code, in bytes.
    package static let fingerprintBytes = 16
    /// Number of characters of a code, without hyphens.
    package static let length = fingerprintLength + secretLength + checkLength
    /// The longest text that the parser reads, in bytes.
    package static let maximumBytes = 128
    /// 128 bits, and two zero bits that are reserved for other kinds of codes.
    private static let fingerprintLength = 26
    private static let secretLength = 17
    private static let checkLength = 2
    private static let groupLength = 5
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// The first bytes of the SHA-256 of the authority's certificate (DER).
    package let fingerprint: [UInt8]
    /// Each from 0 to 31.
    private let secret: [UInt8]

    /// Makes a new code.
    /// - Parameter authority: The certificate (DER) that clients of the service trust.
    package init(authority: [UInt8]) {
        fingerprint = InvitationCode.fingerprint(of: authority)
        secret = (0..<InvitationCode.secretLength).map { _ in UInt8.random(in: 0..<32) }
    }

    /// Parses a code as people copy and type it.
    package init(_ text: some StringProtocol) throws(ParseError) {
        guard text.utf8.count <= InvitationCode.maximumBytes else { throw .length(text.utf8.count) }
        var symbols: [UInt8] = []
        for (index, character) in text.utf8.enumerated() {
            switch character {
            case UInt8(ascii: "-"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                continue
            default:
                guard let symbol = InvitationCode.symbol(character) else { throw .character(index + 1) }
                symbols.append(symbol)
            }
        }
        guard symbols.count == InvitationCode.length else { throw .length(symbols.count) }
        let content = symbols.dropLast(InvitationCode.checkLength)
        guard InvitationCode.check(content) == Array(symbols.suffix(InvitationCode.checkLength)) else {
            throw .checksum
        }
        let (bytes, rest) = InvitationCode.bytes(content.prefix(InvitationCode.fingerprintLength))
        guard rest == 0 else { throw .version }
        fingerprint = bytes
        secret = Array(content.dropFirst(InvitationCode.fingerprintLength))
    }

    /// The code in groups of five.
    package var text: String {
        let content = InvitationCode.symbols(fingerprint) + secret
        let characters = (content + InvitationCode.check(content[...])).map { InvitationCode.alphabet[Int($0)] }
        return stride(from: 0, to: characters.count, by: InvitationCode.groupLength)
            .map {
                String(decoding: characters[$0..<min($0 + InvitationCode.groupLength, characters.count)], as: UTF8.self)
            }
            .joined(separator: "-")
    }

    /// SHA-256 of the secret, which the service keeps.
    ///
    /// A secret of 85 random bits resists brute force, so the hash need not be slow.
    package var digest: [UInt8] {
        Array(SHA256.hash(data: Array("herald invitation\n".utf8) + secret))
    }

    /// Whether the code's fingerprint is that of a certificate (DER).
    package func names(_ certificate: [UInt8]) -> Bool {
        InvitationCode.fingerprint(of: certificate) == fingerprint
    }

    private static func fingerprint(of certificate: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: certificate).prefix(fingerprintBytes))
    }

    private static func symbol(_ character: UInt8) -> UInt8? {
        let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character) ? character - 32 : character
        switch upper {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        default: return alphabet.firstIndex(of: upper).map { UInt8($0) }
        }
    }

    /// The code as one number, modulo a prime, which detects every changed character and every swap of two neighbours.
    private static func check(_ symbols: ArraySlice<UInt8>) -> [UInt8] {
        let remainder = symbols.reduce(0) { ($0 * 32 + Int($1)) % 1021 }
        return [UInt8(remainder / 32), UInt8(remainder % 32)]
    }

    private static func symbols(_ bytes: [UInt8]) -> [UInt8] {
        var symbols: [UInt8] = []
        var pending = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | Int(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                symbols.append(UInt8(pending >> bits & 31))
            }
            pending &= 1 << bits - 1
        }
        if bits > 0 { symbols.append(UInt8(pending << (5 - bits) & 31)) }
        return symbols
    }

    /// Whole bytes, and the remaining bits.
    private static func bytes(_ symbols: ArraySlice<UInt8>) -> ([UInt8], rest: Int) {
        var bytes: [UInt8] = []
        var pending = 0
        var bits = 0
        for symbol in symbols {
            pending = pending << 5 | Int(symbol)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(pending >> bits & 255))
            }
            pending &= 1 << bits - 1
        }
        return (bytes, pending)
    }
}

extension InvitationCode: CustomStringConvertible {
    /// A text without the secret, so that no log has a code by mistake.
    package var description: String { "an invitation code" }
}

extension InvitationCode.ParseError {
    /// The problem and its remedy.
    package var words: String {
        switch self {
        case .length(let found):
            "an invitation code has \(InvitationCode.length) characters without hyphens, and this has \(found): copy all of it"
        case .character(let position):
            "character \(position) of the invitation code is invalid: copy the code again"
        case .checksum: "the invitation code has a typing error: compare it with the original"
        case .version: "a newer version of Herald made the invitation code: use that version here too"
        }
    }
}
