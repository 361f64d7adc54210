/// Base 64 (RFC 4648 §4, §5).
package enum Base64 {
    /// The digits of the standard alphabet.
    package static let standard = shared + Array("+/".utf8)
    /// The digits of the URL-safe alphabet.
    package static let urlSafe = shared + Array("-_".utf8)
    private static let shared = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// The bytes of a text; nil for white space, surplus bits and incomplete padding.
    ///
    /// It reads both alphabets, with padding or without: clients of APNs send all of them, in provider tokens (RFC 7515
    /// wants the URL-safe alphabet without padding) and in identifiers of channels.
    package static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        var digits = text[...]
        while digits.last == UInt8(ascii: "="), text.count - digits.count < 2 { digits = digits.dropLast() }
        guard digits.count % 4 != 1, digits.count == text.count || text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var pending: UInt32 = 0
        var bits = 0
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            pending = pending << 6 | value
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
                pending &= (1 << UInt32(bits)) - 1
            }
        }
        return pending == 0 ? bytes : nil
    }

    /// The text of bytes in an alphabet, URL-safe and without padding unless told otherwise.
    package static func encode(_ bytes: [UInt8], _ digits: [UInt8] = urlSafe, isPadded: Bool = false) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(pending >> UInt32(bits) & 63)])
            }
            pending &= (1 << UInt32(bits)) - 1
        }
        if bits > 0 { text.append(digits[Int(pending << UInt32(6 - bits) & 63)]) }
        while isPadded, !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The value of a digit of either alphabet.
    package static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"), UInt8(ascii: "+"): 62
        case UInt8(ascii: "_"), UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
