import Crypto

/// What a new device is given to become one of a service: a secret that works once, and by what it knows the service.
///
/// 45 characters in groups of five: 26 for the first 128 bits of the SHA-256 of the service's authority (as much as its
/// P-256 key is worth), 17 for a secret of 85 bits, and two that catch mistakes. The characters are Crockford's base 32:
/// digits and capital letters without I, L, O and U. Read are small letters too, O for 0, I and L for 1, and blanks or
/// hyphens anywhere.
package struct InvitationCode: Hashable, Sendable {
    /// Why a text is no code.
    package enum Flaw: Error, Hashable, Sendable {
        /// It has another number of characters than ``length``.
        case length(Int)
        /// A character that no code has, and its place, counted from one.
        case character(Int)
        /// The last two characters do not fit the rest: something was mistyped.
        case check
        /// It was made by a newer version of Herald.
        case version
    }

    /// How much of the fingerprint a code carries, in bytes.
    package static let fingerprintBytes = 16
    /// How many characters a code has, hyphens not counted.
    package static let length = fingerprintLength + secretLength + checkLength
    /// The longest text that is looked at, in bytes.
    package static let maximumBytes = 128
    /// 128 bits and two that are zero; others are for other kinds of codes.
    private static let fingerprintLength = 26
    private static let secretLength = 17
    private static let checkLength = 2
    private static let groupLength = 5
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// The beginning of the SHA-256 of the authority's certificate (DER).
    package let fingerprint: [UInt8]
    /// Each from 0 to 31.
    private let secret: [UInt8]

    /// A new code.
    /// - Parameter authority: The certificate (DER) that vouches for the service.
    package init(authority: [UInt8]) {
        fingerprint = InvitationCode.fingerprint(of: authority)
        secret = (0..<InvitationCode.secretLength).map { _ in UInt8.random(in: 0..<32) }
    }

    /// Reads a code as people copy and type it.
    package init(_ text: some StringProtocol) throws(Flaw) {
        guard text.utf8.count <= InvitationCode.maximumBytes else { throw .length(text.utf8.count) }
        var symbols: [UInt8] = []
        for (place, character) in text.utf8.enumerated() {
            switch character {
            case UInt8(ascii: "-"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                continue
            default:
                guard let symbol = InvitationCode.symbol(character) else { throw .character(place + 1) }
                symbols.append(symbol)
            }
        }
        guard symbols.count == InvitationCode.length else { throw .length(symbols.count) }
        let content = symbols.dropLast(InvitationCode.checkLength)
        guard InvitationCode.check(content) == Array(symbols.suffix(InvitationCode.checkLength)) else { throw .check }
        let (bytes, rest) = InvitationCode.bytes(content.prefix(InvitationCode.fingerprintLength))
        guard rest == 0 else { throw .version }
        fingerprint = bytes
        secret = Array(content.dropFirst(InvitationCode.fingerprintLength))
    }

    /// The code as it is handed out, in groups of five.
    package var text: String {
        let content = InvitationCode.symbols(fingerprint) + secret
        let characters = (content + InvitationCode.check(content[...])).map { InvitationCode.alphabet[Int($0)] }
        return stride(from: 0, to: characters.count, by: InvitationCode.groupLength)
            .map {
                String(decoding: characters[$0..<min($0 + InvitationCode.groupLength, characters.count)], as: UTF8.self)
            }
            .joined(separator: "-")
    }

    /// What the service keeps of the secret: its SHA-256.
    ///
    /// A secret of 85 random bits cannot be found from it by trying, so the hash need not be a slow one.
    package var digest: [UInt8] {
        Array(SHA256.hash(data: Array("herald invitation\n".utf8) + secret))
    }

    /// Whether a certificate (DER) is the authority that the code names.
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

    /// The remainder of the code, taken as one number, by a prime: every change of one character and every exchange of two
    /// neighbours shows.
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

    /// Whole bytes, and what is left over.
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
    /// Says nothing of the secret, so that a code never stands in a log by mistake.
    package var description: String { "an invitation code" }
}

extension InvitationCode.Flaw {
    /// What is wrong, and how to mend it.
    package var words: String {
        switch self {
        case .length(let found):
            "an invitation code has \(InvitationCode.length) letters and digits, and this has \(found): copy all of it"
        case .character(let place):
            "character \(place) of the invitation code is not one that codes have: copy it again"
        case .check: "the invitation code is mistyped: compare it with the one that was given out"
        case .version: "the invitation code is of a newer version of Herald: use that one here too"
        }
    }
}
