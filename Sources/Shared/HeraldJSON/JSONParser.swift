extension JSON {
    /// Rules of a parser; RFC 8259 §9 lets a parser set limits.
    public struct Rules: Hashable, Sendable {
        /// Whether the parser accepts what two readers could understand differently.
        ///
        /// If so, of members with the same name the last counts, and half of a surrogate pair becomes U+FFFD. If not, the
        /// parser refuses both.
        public var isLenient: Bool
        /// The deepest nesting of arrays and objects; as deep as Foundation's parser goes.
        public var maximumDepth: Int
        /// The most values of one text, nested ones included.
        public var maximumValues: Int

        /// The nesting below which arrays and objects are read, but kept as `null`.
        public var keptDepth: Int

        /// Creates rules.
        public init(
            isLenient: Bool,
            maximumDepth: Int = 512,
            maximumValues: Int = .max,
            keptDepth: Int = .max
        ) {
            self.isLenient = isLenient
            self.maximumDepth = maximumDepth
            self.maximumValues = maximumValues
            self.keptDepth = keptDepth
        }

        /// Refuses repeated names and halves of surrogate pairs.
        public static let strict = Rules(isLenient: false)
        /// Accepts repeated names and halves of surrogate pairs.
        public static let lenient = Rules(isLenient: true)
    }

    /// An error in a text that should be JSON.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// A kind of error.
        public enum Reason: Hashable, Sendable {
            /// The text is not JSON.
            case malformed
            /// The text is not UTF-8.
            case notUTF8
            /// Arrays and objects are nested deeper than ``JSON/Rules/maximumDepth``.
            case tooDeep
            /// There are more values than ``JSON/Rules/maximumValues``.
            case tooManyValues
            /// An object has two members of the same name.
            case repeatedName
            /// An escape is half of a surrogate pair, which is not a character.
            case loneSurrogate
        }

        /// The kind of error.
        public let reason: Reason
        /// The byte at which it is wrong, counted from 0; the length of the text if it ends too early.
        public let position: Int

        /// The error in a few words that contain nothing of the text.
        public var description: String {
            switch reason {
            case .malformed: "not JSON at byte \(position)"
            case .notUTF8: "not UTF-8 at byte \(position)"
            case .tooDeep: "nested too deep at byte \(position)"
            case .tooManyValues: "too many values at byte \(position)"
            case .repeatedName: "a repeated name at byte \(position)"
            case .loneSurrogate: "half of a surrogate pair at byte \(position)"
            }
        }
    }

    /// Reads one whole text, which must be strict RFC 8259 in UTF-8 without a byte order mark.
    /// - Throws: ``JSON/Failure``.
    public init(_ bytes: [UInt8], rules: Rules = .strict) throws(Failure) {
        var parser = Parser(bytes, rules)
        self = try parser.document()
    }

    /// Reads one whole text, and lists the names that appear more than once in one of its objects.
    /// - Throws: ``JSON/Failure``.
    public static func listingRepeatedNames(
        _ bytes: [UInt8],
        rules: Rules = .lenient
    ) throws(Failure) -> (json: JSON, repeatedNames: [String]) {
        var parser = Parser(bytes, rules)
        return (try parser.document(), parser.repeatedNames)
    }
}

/// One pass over one text, with a stack of open arrays and objects in place of recursion.
private struct Parser {
    /// An array or object whose end has not been read.
    private struct Open {
        let isObject: Bool
        var members = JSON.Object()
        var elements: [JSON] = []
        /// The name of the member whose value comes next.
        var name = ""
    }

    private let bytes: [UInt8]
    private let rules: JSON.Rules
    private var position = 0
    private var open: [Open] = []
    private var count = 0
    private(set) var repeatedNames: [String] = []

    init(_ bytes: [UInt8], _ rules: JSON.Rules) {
        self.bytes = bytes
        self.rules = rules
    }

    mutating func document() throws(JSON.Failure) -> JSON {
        let document = try value()
        skipSpace()
        guard position == bytes.count else { throw failure(.malformed) }
        return document
    }

    private mutating func value() throws(JSON.Failure) -> JSON {
        while true {
            var complete = try begin()
            while let value = complete {
                guard !open.isEmpty else { return value }
                complete = try add(value)
            }
        }
    }

    /// Reads a scalar or an empty array or object; nil if one has begun whose first value comes next.
    private mutating func begin() throws(JSON.Failure) -> JSON? {
        skipSpace()
        count += 1
        guard count <= rules.maximumValues else { throw failure(.tooManyValues) }
        switch peek() {
        case UInt8(ascii: "{"):
            try enter(isObject: true)
            if take(UInt8(ascii: "}")) { return close() }
            try name()
            return nil
        case UInt8(ascii: "["):
            try enter(isObject: false)
            return take(UInt8(ascii: "]")) ? close() : nil
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .boolean(true))
        case UInt8(ascii: "f"): return try literal("false", .boolean(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return .number(try number())
        }
    }

    /// Adds a value to the innermost array or object; returns that one if it is complete, or nil after a comma.
    private mutating func add(_ value: JSON) throws(JSON.Failure) -> JSON? {
        let last = open.count - 1
        let isObject = open[last].isObject
        if isObject {
            open[last].members[open[last].name] = value
        } else {
            open[last].elements.append(value)
        }
        if take(UInt8(ascii: ",")) {
            if isObject { try name() }
            return nil
        }
        guard take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw failure(.malformed) }
        return close()
    }

    private mutating func enter(isObject: Bool) throws(JSON.Failure) {
        guard open.count < rules.maximumDepth else { throw failure(.tooDeep) }
        position += 1
        open.append(Open(isObject: isObject))
    }

    private mutating func close() -> JSON {
        let closed = open.removeLast()
        guard open.count < rules.keptDepth else { return .null }
        return closed.isObject ? .object(closed.members) : .array(closed.elements)
    }

    /// Reads `"name" :` of the innermost object.
    private mutating func name() throws(JSON.Failure) {
        skipSpace()
        let start = position
        let name = try string()
        guard take(UInt8(ascii: ":")) else { throw failure(.malformed) }
        if open[open.count - 1].members[name] != nil {
            guard rules.isLenient else { throw JSON.Failure(reason: .repeatedName, position: start) }
            repeatedNames.append(name)
        }
        open[open.count - 1].name = name
    }

    private mutating func literal(_ text: StaticString, _ value: JSON) throws(JSON.Failure) -> JSON {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count, text.withUTF8Buffer({ $0.elementsEqual(bytes[position..<end]) }) else {
            throw failure(.malformed)
        }
        position = end
        return value
    }

    /// RFC 8259 §6: no leading zero, no bare point, no empty exponent.
    private mutating func number() throws(JSON.Failure) -> JSON.Number {
        let start = position
        if peek() == UInt8(ascii: "-") { position += 1 }
        if peek() == UInt8(ascii: "0") { position += 1 } else { try digits() }
        if peek() == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if peek() == UInt8(ascii: "e") || peek() == UInt8(ascii: "E") {
            position += 1
            if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return JSON.Number(checked: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(JSON.Failure) {
        let start = position
        while let byte = peek(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw failure(.malformed) }
    }

    // MARK: - Strings

    private mutating func string() throws(JSON.Failure) -> String {
        guard peek() == UInt8(ascii: "\"") else { throw failure(.malformed) }
        position += 1
        var text = ""
        while true {
            text += try plain()
            let byte = peek()
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { throw failure(.malformed) }
            position += 1
            if byte == UInt8(ascii: "\"") { return text }
            text.unicodeScalars.append(try escape())
        }
    }

    /// Reads up to a quotation mark, a backslash, or a control character, which a string must escape.
    private mutating func plain() throws(JSON.Failure) -> String {
        let start = position
        while let byte = peek(), byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { position += 1 }
        if let text = String(validating: bytes[start..<position], as: UTF8.self) { return text }
        var units = bytes[start..<position].makeIterator()
        var decoder = UTF8()
        position = start
        while case .scalarValue(let scalar) = decoder.decode(&units) { position += UTF8.width(scalar) }
        throw failure(.notUTF8)
    }

    /// Reads an escape behind its backslash.
    private mutating func escape() throws(JSON.Failure) -> Unicode.Scalar {
        let byte = peek()
        position += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try escapedScalar()
        default:
            position -= 1
            throw failure(.malformed)
        }
    }

    /// Reads the digits behind `\u`, with the second half of a surrogate pair.
    private mutating func escapedScalar() throws(JSON.Failure) -> Unicode.Scalar {
        let start = position - 2
        let first = try fourHexDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        let end = position
        if first < 0xDC00, peek() == UInt8(ascii: "\\") {
            position += 1
            if peek() == UInt8(ascii: "u") {
                position += 1
                let second = try fourHexDigits()
                if (0xDC00..<0xE000).contains(second),
                    let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
                {
                    return scalar
                }
            }
        }
        guard rules.isLenient else { throw JSON.Failure(reason: .loneSurrogate, position: start) }
        position = end
        return "\u{FFFD}"
    }

    private mutating func fourHexDigits() throws(JSON.Failure) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = peek().flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else {
                throw failure(.malformed)
            }
            position += 1
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    // MARK: - Bytes

    private func failure(_ reason: JSON.Failure.Reason) -> JSON.Failure {
        JSON.Failure(reason: reason, position: min(position, bytes.count))
    }

    private func peek() -> UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    /// Skips white space, and consumes one byte if it is the next.
    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }
}
