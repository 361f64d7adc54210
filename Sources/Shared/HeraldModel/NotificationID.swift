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
