import HeraldModel

/// A JSON object of a provider token: the header or the claims.
///
/// The parser is strict: UTF-8, no duplicate members, nothing after the object, at most 32 levels. It refuses every token
/// that two parsers could understand differently (RFC 8725 §2.4).
struct TokenJSON {
    /// The value of a member.
    enum Value: Hashable {
        case string(String)
        /// An integer in the range of `Int64`.
        case integer(Int64)
        /// The integer part of a number with a fraction and without exponent.
        case decimal(Int64)
        /// Any other valid value.
        case other
    }

    static let maximumDepth = 32
    static let maximumMembers = 64

    private var members: [String: Value] = [:]

    subscript(name: String) -> Value? { members[name] }

    /// Parses exactly one object, with optional white space around it.
    /// - Returns: nil if the bytes are invalid.
    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard reader.take(UInt8(ascii: "{")) else { return nil }
        if !reader.take(UInt8(ascii: "}")) {
            repeat {
                guard members.count < TokenJSON.maximumMembers, let name = reader.string(),
                    reader.take(UInt8(ascii: ":")), let value = reader.value(depth: 1),
                    members.updateValue(value, forKey: name) == nil
                else { return nil }
            } while reader.take(UInt8(ascii: ","))
            guard reader.take(UInt8(ascii: "}")) else { return nil }
        }
        guard reader.isAtEnd() else { return nil }
    }
}

private struct Reader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func isAtEnd() -> Bool {
        skipSpace()
        return position == bytes.count
    }

    /// Skips white space, and consumes one byte if it is the next.
    mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    mutating func value(depth: Int) -> TokenJSON.Value? {
        guard depth <= TokenJSON.maximumDepth else { return nil }
        skipSpace()
        guard position < bytes.count else { return nil }
        switch bytes[position] {
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "{"): return object(depth: depth)
        case UInt8(ascii: "["): return array(depth: depth)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
        default: return literal("true") || literal("false") || literal("null") ? .other : nil
        }
    }

    /// Parses a string and its escapes.
    mutating func string() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var text: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                text += Array(String(scalar).utf8)
            case 0..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    private mutating func object(depth: Int) -> TokenJSON.Value? {
        position += 1
        if take(UInt8(ascii: "}")) { return .other }
        var names: Set<String> = []
        repeat {
            guard names.count < TokenJSON.maximumMembers, let name = string(), names.insert(name).inserted,
                take(UInt8(ascii: ":")), value(depth: depth + 1) != nil
            else { return nil }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .other : nil
    }

    private mutating func array(depth: Int) -> TokenJSON.Value? {
        position += 1
        if take(UInt8(ascii: "]")) { return .other }
        repeat {
            guard value(depth: depth + 1) != nil else { return nil }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .other : nil
    }

    private mutating func number() -> TokenJSON.Value? {
        let start = position
        if peek() == UInt8(ascii: "-") { position += 1 }
        let first = position
        guard digits() > 0, bytes[first] != UInt8(ascii: "0") || position == first + 1 else { return nil }
        let end = position
        if peek() == UInt8(ascii: ".") {
            position += 1
            guard digits() > 0 else { return nil }
        }
        let endOfFraction = position
        if peek() == UInt8(ascii: "e") || peek() == UInt8(ascii: "E") {
            position += 1
            if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { position += 1 }
            guard digits() > 0 else { return nil }
        }
        guard position == endOfFraction, let whole = Int64(String(decoding: bytes[start..<end], as: UTF8.self)) else {
            return .other
        }
        return position == end ? .integer(whole) : .decimal(whole)
    }

    private mutating func digits() -> Int {
        let start = position
        while let byte = peek(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return position - start
    }

    private mutating func literal(_ text: StaticString) -> Bool {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count, text.withUTF8Buffer({ $0.elementsEqual(bytes[position..<end]) }) else { return false }
        position = end
        return true
    }

    /// The character of an escape sequence.
    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = peek() else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return unicodeEscape()
        default: return nil
        }
    }

    private mutating func unicodeEscape() -> Unicode.Scalar? {
        guard let first = fourHexDigits() else { return nil }
        guard (0xD800..<0xE000).contains(first) else { return Unicode.Scalar(first) }
        // A high surrogate needs its low one in a second escape.
        guard first < 0xDC00, peek() == UInt8(ascii: "\\") else { return nil }
        position += 1
        guard peek() == UInt8(ascii: "u") else { return nil }
        position += 1
        guard let second = fourHexDigits(), (0xDC00..<0xE000).contains(second) else { return nil }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    private mutating func fourHexDigits() -> UInt32? {
        guard bytes.count - position >= 4 else { return nil }
        let digits = bytes[position..<position + 4]
        position += 4
        return Hex.bytes(String(decoding: digits, as: UTF8.self)).map { UInt32($0[0]) << 8 | UInt32($0[1]) }
    }

    private func peek() -> UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || (0x9...0xA).contains(byte) || byte == 0xD { position += 1 }
    }
}
