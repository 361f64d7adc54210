/// The identifier of one notification (`apns-id`, `apns-unique-id`): a UUID of 128 bits.
public struct NotificationID: Hashable, Sendable {
    /// The first eight bytes, most significant first.
    public let high: UInt64
    /// The last eight bytes.
    public let low: UInt64

    /// Makes an identifier from its two halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Makes a random identifier (version 4, RFC 9562 §5.4).
    public static func random(using generator: inout some RandomNumberGenerator) -> NotificationID {
        NotificationID(random: generator.next(), generator.next())
    }

    /// Makes a random identifier (version 4, RFC 9562 §5.4) from 122 of 128 random bits.
    package init(random first: UInt64, _ second: UInt64) {
        high = (first & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000
        low = (second & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
    }

    /// Makes a random identifier from the system's generator.
    public static func random() -> NotificationID {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    /// Reads the canonical form: 32 hexadecimal digits of either case, as 8-4-4-4-12.
    /// - Returns: nil for every other text.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        let id = text.withUTF8 { NotificationID(utf8: UnsafeRawBufferPointer($0)) }
        guard let id else { return nil }
        self = id
    }

    /// Reads the canonical form in place; not generic, because every request uses it.
    package init?(utf8 bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 36 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for position in 0..<36 {
            let byte = bytes[position]
            if position == 8 || position == 13 || position == 18 || position == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Hex.value(of: byte) else { return nil }
            if position < 18 {
                high = high << 4 | UInt64(digit)
            } else {
                low = low << 4 | UInt64(digit)
            }
        }
        self.init(high: high, low: low)
    }

    /// The 36 bytes of the canonical form in lower case.
    package var canonicalBytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 36) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            count = 36
        }
    }

    /// Writes the canonical form in lower case into at least 36 bytes.
    package func write(to text: UnsafeMutableRawBufferPointer) {
        let middle = (
            Hex.digits(UInt32(truncatingIfNeeded: high)).littleEndian,
            Hex.digits(UInt32(truncatingIfNeeded: low >> 32)).littleEndian
        )
        text.storeBytes(of: Hex.digits(UInt32(high >> 32)), toByteOffset: 0, as: UInt64.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: middle.0).littleEndian, toByteOffset: 9, as: UInt32.self)
        text.storeBytes(of: UInt32(middle.0 >> 32).littleEndian, toByteOffset: 14, as: UInt32.self)
        text.storeBytes(of: UInt32(truncatingIfNeeded: middle.1).littleEndian, toByteOffset: 19, as: UInt32.self)
        text.storeBytes(of: UInt32(middle.1 >> 32).littleEndian, toByteOffset: 24, as: UInt32.self)
        text.storeBytes(of: Hex.digits(UInt32(truncatingIfNeeded: low)), toByteOffset: 28, as: UInt64.self)
        text[8] = UInt8(ascii: "-")
        text[13] = UInt8(ascii: "-")
        text[18] = UInt8(ascii: "-")
        text[23] = UInt8(ascii: "-")
    }
}

extension NotificationID: CustomStringConvertible {
    /// The canonical form in lower case.
    public var description: String {
        String(decoding: canonicalBytes, as: UTF8.self)
    }
}

/// Hexadecimal digits.
package enum Hex {
    /// The value of a digit of either case.
    package static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Reads sixteen digits, eight at a time; nil if one of them is not a digit.
    ///
    /// Without a branch for each digit, which would be mispredicted.
    package static func word(_ digits: UnsafeRawBufferPointer, at start: Int) -> UInt64? {
        guard start >= 0, digits.count - start >= 16,
            let high = half(digits.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
            let low = half(digits.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self))
        else { return nil }
        return high << 32 | low
    }

    /// Reads eight digits from a word in memory order.
    private static func half(_ digits: UInt64) -> UInt64? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs = ones &* 0x80
        let bytes = UInt64(bigEndian: digits)
        let lower = bytes | ones &* 0x20
        // The highest bit of each byte: no sum of two bytes below 128 reaches the next.
        let areDigits = (bytes &+ ones &* (0x80 - 0x30)) & ~(bytes &+ ones &* (0x80 - 0x3A))
        let areLetters = (lower &+ ones &* (0x80 - 0x61)) & ~(lower &+ ones &* (0x80 - 0x67)) & highs
        guard bytes & highs == 0, (areDigits | areLetters) & highs == highs else { return nil }
        var value = bytes & (ones &* 0x0F) &+ (areLetters >> 7) &* 9
        value = (value | value >> 4) & 0x00FF_00FF_00FF_00FF
        value = (value | value >> 8) & 0x0000_FFFF_0000_FFFF
        return (value | value >> 16) & 0xFFFF_FFFF
    }

    /// The eight lower-case digits of a word, in memory order; without a branch for each digit.
    package static func digits(_ word: UInt32) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var values = UInt64(word)
        values = (values | values << 16) & 0x0000_FFFF_0000_FFFF
        values = (values | values << 8) & 0x00FF_00FF_00FF_00FF
        values = (values | values << 4) & (ones &* 0x0F)
        let areLetters = (values &+ ones &* 6) >> 4 & ones
        return (values &+ ones &* UInt64(UInt8(ascii: "0")) &+ areLetters &* 39).bigEndian
    }

    /// Writes the sixteen lower-case digits of a word.
    package static func write(_ word: UInt64, to digits: UnsafeMutableBufferPointer<UInt8>, at start: Int) {
        let bytes = UnsafeMutableRawBufferPointer(digits)
        bytes.storeBytes(of: Hex.digits(UInt32(word >> 32)), toByteOffset: start, as: UInt64.self)
        bytes.storeBytes(
            of: Hex.digits(UInt32(truncatingIfNeeded: word)),
            toByteOffset: start + 8,
            as: UInt64.self
        )
    }

    private static let lowerDigits = Array("0123456789abcdef".utf8)

    /// The lower-case digits of bytes.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        for byte in bytes {
            digits.append(lowerDigits[Int(byte >> 4)])
            digits.append(lowerDigits[Int(byte & 0xF)])
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The bytes that an even number of digits spell.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var pending: UInt8?
        for digit in text.utf8 {
            guard let value = value(of: digit) else { return nil }
            if let high = pending {
                bytes.append(high << 4 | value)
                pending = nil
            } else {
                pending = value
            }
        }
        return pending == nil ? bytes : nil
    }
}
