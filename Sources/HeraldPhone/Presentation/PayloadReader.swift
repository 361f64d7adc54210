import HeraldModel

/// Reads JSON into values, with a limit on recursion, and finds repeated keys.
public struct PayloadReader {
    /// The deepest nesting that is read; deeper values are ``PayloadValue/unread``.
    public static let maximumDepth = 64

    /// The result of reading a payload.
    public enum Outcome: Hashable, Sendable {
        /// A JSON object, with the keys that appear more than once in one of its dictionaries.
        case object([String: PayloadValue], repeatedKeys: [String])
        /// Well-formed JSON that is not an object.
        case notAnObject
        /// Not JSON, or not UTF-8, from this byte on.
        case malformed(at: Int)
    }

    private let bytes: [UInt8]
    private var position = 0
    private var repeatedKeys: [String] = []

    /// Reads one whole payload.
    public static func read(_ payload: [UInt8]) -> Outcome {
        switch PayloadScanner.scan(payload) {
        case .malformed(let position): return .malformed(at: position)
        case .notAnObject: return .notAnObject
        case .object:
            // The scanner has checked that it is well-formed. The reader only has to stay within the bytes.
            var reader = PayloadReader(bytes: payload)
            guard case .object(let members) = reader.value(depth: 1) else { return .notAnObject }
            return .object(members, repeatedKeys: reader.repeatedKeys)
        }
    }

    /// The `aps` dictionary of a payload; nil if it has none.
    static func aps(of payload: [UInt8]) -> [String: PayloadValue]? {
        guard case .object(let members, _) = read(payload) else { return nil }
        return members["aps"]?.members
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func value(depth: Int) -> PayloadValue {
        skipSpace()
        switch peek() {
        case UInt8(ascii: "{"): return depth > Self.maximumDepth ? skipNested() : object(depth: depth)
        case UInt8(ascii: "["): return depth > Self.maximumDepth ? skipNested() : array(depth: depth)
        case UInt8(ascii: "\""): return .string(string())
        case UInt8(ascii: "t"):
            position += 4
            return .boolean(true)
        case UInt8(ascii: "f"):
            position += 5
            return .boolean(false)
        case UInt8(ascii: "n"):
            position += 4
            return .null
        default: return number()
        }
    }

    private mutating func object(depth: Int) -> PayloadValue {
        var members: [String: PayloadValue] = [:]
        position += 1
        skipSpace()
        while let byte = peek(), byte != UInt8(ascii: "}") {
            let key = string()
            skipSpace()
            position += 1
            if members.updateValue(value(depth: depth + 1), forKey: key) != nil { repeatedKeys.append(key) }
            skipSeparator()
        }
        position += 1
        return .object(members)
    }

    private mutating func array(depth: Int) -> PayloadValue {
        var elements: [PayloadValue] = []
        position += 1
        skipSpace()
        while let byte = peek(), byte != UInt8(ascii: "]") {
            elements.append(value(depth: depth + 1))
            skipSeparator()
        }
        position += 1
        return .array(elements)
    }

    private mutating func number() -> PayloadValue {
        let start = position
        while let byte = peek(), Self.isOfNumber(byte) { position += 1 }
        // Always advances.
        if position == start { position += 1 }
        return Double(String(decoding: bytes[start..<min(position, bytes.count)], as: UTF8.self)).map { .number($0) }
            ?? .null
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// Reads a string with its quotes and escapes; a lone surrogate becomes U+FFFD.
    private mutating func string() -> String {
        position += 1
        var units: [UInt8] = []
        while let byte = peek(), byte != UInt8(ascii: "\"") {
            position += 1
            if byte == UInt8(ascii: "\\") {
                units += escape()
            } else {
                units.append(byte)
            }
        }
        position += 1
        return String(decoding: units, as: UTF8.self)
    }

    private mutating func escape() -> [UInt8] {
        let kind = peek() ?? 0
        position += 1
        switch kind {
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"):
            var units = [codeUnit()]
            if UTF16.isLeadSurrogate(units[0]), peek() == UInt8(ascii: "\\"),
                bytes.dropFirst(position + 1).first == 0x75
            {
                let before = position
                position += 2
                let second = codeUnit()
                if UTF16.isTrailSurrogate(second) { units.append(second) } else { position = before }
            }
            return Array(String(decoding: units, as: UTF16.self).utf8)
        default: return [kind]
        }
    }

    private mutating func codeUnit() -> UInt16 {
        let end = min(position + 4, bytes.count)
        let unit = UInt16(String(decoding: bytes[min(position, end)..<end], as: UTF8.self), radix: 16)
        position += 4
        return unit ?? 0xFFFD
    }

    /// Skips a bracket with its content.
    private mutating func skipNested() -> PayloadValue {
        var depth = 0
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""): _ = string()
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                position += 1
                if depth == 0 { return .unread }
            default: position += 1
            }
        }
        return .unread
    }

    private func peek() -> UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func skipSeparator() {
        skipSpace()
        guard peek() == UInt8(ascii: ",") else { return }
        position += 1
        skipSpace()
    }
}
