extension JSON {
    /// A number of JSON: the text in which it was written (RFC 8259 §6).
    ///
    /// Two numbers are equal if their texts are: `1.0` differs from `1`, though ``exactly(_:)`` is 1 for both.
    public struct Number: Hashable, Sendable {
        /// The text, for example `-12.50e3`.
        public let text: String

        /// Takes a text that the parser has checked.
        init(checked text: String) {
            self.text = text
        }

        /// Creates the number of an integer.
        public init(_ integer: some FixedWidthInteger) {
            text = String(integer)
        }

        /// Creates the number of a `Double`, with the fewest digits that name it; nil if it is infinite or not a number.
        public init?(_ double: Double) {
            guard double.isFinite else { return nil }
            text = Int64(exactly: double).map { String($0) } ?? double.description
        }

        /// The integer that this number is; nil if it has a fraction, is beyond the range of the type, or has
        /// more than 38 digits.
        ///
        /// The value counts, not the spelling: `1`, `1.0`, `10e-1` and `1e0` are the integer 1. Every digit counts, also
        /// above 2^53.
        public func exactly<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? {
            let parts = Parts(text)
            // Int128 holds 38 digits; zeros at the end are part of the scale.
            guard !parts.digits.isEmpty else { return 0 }
            guard parts.scale >= 0, parts.scale <= 38, parts.digits.count + parts.scale <= 38 else { return nil }
            var value: Int128 = 0
            for digit in parts.digits { value = value * 10 + Int128(digit) }
            for _ in 0..<parts.scale { value *= 10 }
            return Integer(exactly: parts.isNegative ? -value : value)
        }

        /// The nearest `Double`; nil if the number is beyond the range of `Double`.
        public var double: Double? {
            Double(text).flatMap { $0.isFinite ? $0 : nil }
        }
    }
}

extension JSON.Number: ExpressibleByIntegerLiteral {
    /// Creates the number of an integer literal.
    public init(integerLiteral value: Int) {
        self.init(value)
    }
}

extension JSON.Number: CustomStringConvertible {
    /// The text.
    public var description: String { text }
}

/// A number as `digits` times ten to the power of `scale`, without zeros at either end.
private struct Parts {
    var isNegative = false
    /// The digits' values; empty for zero.
    var digits: [UInt8] = []
    /// The power of ten; far away from any range of numbers if the exponent has more digits than fit.
    var scale = 0

    init(_ text: String) {
        var isFraction = false
        var exponent: Substring.UTF8View?
        for (index, byte) in zip(text.utf8.indices, text.utf8) {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): exponent = text[text.utf8.index(after: index)...].utf8
            default:
                if !digits.isEmpty || byte != UInt8(ascii: "0") { digits.append(byte & 0x0F) }
                if isFraction { scale -= 1 }
            }
            if exponent != nil { break }
        }
        while digits.last == 0 {
            digits.removeLast()
            scale += 1
        }
        if let exponent { scale += Self.power(exponent) }
    }

    /// The power in an exponent, at most a billion in either direction.
    private static func power(_ exponent: Substring.UTF8View) -> Int {
        var power = 0
        for byte in exponent where byte != UInt8(ascii: "+") && byte != UInt8(ascii: "-") {
            power = min(power * 10 + Int(byte & 0x0F), 1_000_000_000)
        }
        return exponent.first == UInt8(ascii: "-") ? -power : power
    }
}
