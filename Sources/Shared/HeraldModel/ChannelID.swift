/// The identifier of a broadcast channel (`apns-channel-id`): 128 random bits, because anybody who knows it may subscribe.
///
/// Providers write it in base64 ("Sending channel management requests to APNs"), MQTT topics in base64url (RFC 4648 §5),
/// because `/` and `+` are special there. Both with padding.
package struct ChannelID: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    /// The longest text that is read as an identifier, in bytes.
    package static let maximumTextBytes = 64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Makes a random identifier from the system's generator.
    package static func random() -> ChannelID {
        var generator = SystemRandomNumberGenerator()
        return ChannelID(high: generator.next(), low: generator.next())
    }

    /// The result of reading a text in base64.
    package enum Reading: Hashable, Sendable {
        case channel(ChannelID)
        /// Base64 of another length: no identifier of this service.
        case unknown
        /// Not base64, or too long.
        case malformed
    }

    /// Reads the value of `apns-channel-id`.
    ///
    /// Accepts both alphabets, with or without padding: clients put it into URLs too.
    package static func read(_ text: some Sequence<UInt8>) -> Reading {
        var bits: UInt64 = 0
        var bitCount = 0
        var bytes: [UInt8] = []
        var textCount = 0
        var padding = 0
        for byte in text {
            textCount += 1
            guard textCount <= maximumTextBytes else { return .malformed }
            if byte == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            guard padding == 0, let value = value(of: byte) else { return .malformed }
            bits = bits << 6 | UInt64(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(bitCount)))
            }
        }
        // A single digit in the last group holds no byte; padding fills the group, or is left out.
        guard textCount > 0, (textCount - padding) % 4 != 1, padding == 0 || (padding <= 2 && textCount % 4 == 0),
            bits & ((1 << UInt64(bitCount)) - 1) == 0
        else { return .malformed }
        guard bytes.count == 16 else { return .unknown }
        return .channel(
            ChannelID(
                high: bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) },
                low: bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
            )
        )
    }

    /// Reads the last level of a topic.
    /// - Returns: nil for any other spelling than ``topicLevel``: topics are compared byte for byte.
    package init?(topicLevel text: String) {
        guard case .channel(let id) = ChannelID.read(text.utf8), id.topicLevel.utf8.elementsEqual(text.utf8) else {
            return nil
        }
        self = id
    }

    /// The identifier as providers read it.
    package var base64: String { text(ChannelID.standardDigits) }

    /// The identifier as a level of an MQTT topic.
    package var topicLevel: String { text(ChannelID.topicDigits) }

    /// The sixteen bytes.
    package var bytes: [UInt8] {
        (0..<16).map { index in
            UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - 8 * (index % 8)))
        }
    }

    private func text(_ digits: [UInt8]) -> String {
        let bytes = bytes
        var text: [UInt8] = []
        text.reserveCapacity(24)
        for start in stride(from: 0, to: 16, by: 3) {
            let group = bytes[start..<min(start + 3, 16)]
            let value = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                let isPadding = place > group.count
                text.append(isPadding ? UInt8(ascii: "=") : digits[Int(value >> UInt32(18 - 6 * place)) & 63])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static let standardDigits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let topicDigits = Array(standardDigits.dropLast(2)) + Array("-_".utf8)

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}

extension ChannelID: CustomStringConvertible {
    /// The identifier as providers read it.
    package var description: String { base64 }
}
