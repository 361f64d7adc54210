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

    /// The lower-case digits of random bytes from the system's generator, good for a secret.
    package static func random(bytes: Int) -> String {
        text((0..<bytes).map { _ in UInt8.random(in: 0...255) })
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
