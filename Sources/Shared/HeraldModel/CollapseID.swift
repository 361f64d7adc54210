/// The collapse identifier of notifications (`apns-collapse-id`): a device shows the newest of those that share it.
///
/// 1 to 64 bytes of UTF-8 ("Sending notification requests to APNs") that both a header field and an MQTT string carry: no
/// control character, which a header field may have as a tab, no non-character, and no space at either end (RFC 9113 §8.2.1).
package struct CollapseID: Hashable, Sendable {
    /// The longest identifier, in bytes.
    package static let maximumLength = 64
    /// The rule in words, for a message that names the field: `apns-collapse-id is …`.
    package static let rule = "1 to 64 bytes of printable text in UTF-8, without a space at either end"

    package let text: String
}

extension CollapseID {
    /// Reads an identifier; nil if it is empty, too long, or has an invalid character.
    package init?(_ text: String) {
        var text = text
        guard text.withUTF8({ CollapseID.isValid($0) }) else { return nil }
        self.init(text: text)
    }

    /// Reads an identifier from its bytes; nil also if they are not UTF-8.
    package init?(utf8 bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= CollapseID.maximumLength, let text = String(validating: bytes, as: UTF8.self) else {
            return nil
        }
        self.init(text)
    }

    /// Whether well-formed UTF-8 is an identifier.
    private static func isValid(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = bytes.first, let last = bytes.last, bytes.count <= maximumLength, first != 0x20, last != 0x20
        else { return false }
        // Nearly all are printable ASCII.
        return bytes.allSatisfy { (0x20..<0x7F).contains($0) }
            || String(decoding: bytes, as: UTF8.self).unicodeScalars.allSatisfy(\.isAllowedInMQTT)
    }
}

extension Unicode.Scalar {
    /// Whether every receiver takes the character in an MQTT string.
    ///
    /// MQTT 5 §1.5.4 lets a receiver refuse a packet for a control character (U+0000 to U+001F, U+007F to U+009F) or a
    /// non-character (U+FDD0 to U+FDEF, and the last two of each plane). U+0000 is forbidden ([MQTT-1.5.4-2]).
    package var isAllowedInMQTT: Bool {
        switch value {
        case 0...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: false
        default: value & 0xFFFE != 0xFFFE
        }
    }
}
