/// Base 32 without padding (RFC 4648 §6), as NATS writes keys.
enum Base32 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 5 {
                count -= 5
                text.append(digits[Int(bits >> UInt32(count) & 31)])
            }
            bits &= (1 << UInt32(count)) - 1
        }
        if count > 0 { text.append(digits[Int(bits << UInt32(5 - count) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text; nil if it has another digit, a length that no bytes have, or bits that are left over.
    static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for digit in text.utf8 {
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): bits = bits << 5 | UInt32(digit - UInt8(ascii: "A"))
            case UInt8(ascii: "2")...UInt8(ascii: "7"): bits = bits << 5 | UInt32(digit - UInt8(ascii: "2") + 26)
            default: return nil
            }
            count += 5
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                bits &= (1 << UInt32(count)) - 1
            }
        }
        return count < 5 && bits == 0 ? bytes : nil
    }
}
