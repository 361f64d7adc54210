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
    package static func read(_ text: some Collection<UInt8>) -> Reading {
        guard (1...maximumTextBytes).contains(text.count), let bytes = Array(text).withUnsafeBytes(Base64.decode) else {
            return .malformed
        }
        return ChannelID(bytes: bytes).map { .channel($0) } ?? .unknown
    }

    /// Reads an identifier in either alphabet; nil for another text.
    package init?(_ text: String) {
        guard case .channel(let id) = ChannelID.read(text.utf8) else { return nil }
        self = id
    }

    /// Makes an identifier from its sixteen bytes; nil for another number.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads the last level of a topic.
    /// - Returns: nil for any other spelling than ``topicLevel``: topics are compared byte for byte.
    package init?(topicLevel text: String) {
        guard let id = ChannelID(text), id.topicLevel.utf8.elementsEqual(text.utf8) else { return nil }
        self = id
    }

    /// The identifier as providers read it.
    package var base64: String { Base64.encode(bytes, Base64.standard, isPadded: true) }

    /// The identifier as a level of an MQTT topic.
    package var topicLevel: String { Base64.encode(bytes, isPadded: true) }

    /// The sixteen bytes.
    package var bytes: [UInt8] {
        (0..<16).map { index in
            UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - 8 * (index % 8)))
        }
    }
}

extension ChannelID: CustomStringConvertible {
    /// The identifier as providers read it.
    package var description: String { base64 }
}
