/// What a notification is for: an app's bundle identifier, with the suffix of its push type where that type has one.
///
/// 1 to 200 bytes; letters, digits, `-`, `_` and `.`; neither the first nor the last character is a `.` and no two
/// stand together. `com.example.chat`, `com.example.chat.voip`, `com.apple.mgmt.External.<uuid>`. The set is closed on purpose: a topic is
/// part of an MQTT topic name and of file names, and nothing in it can be taken for a wildcard or a separator.
public struct Topic: Hashable, Sendable {
    /// The longest topic, in bytes.
    public static let maximumLength = 200

    /// The topic as it is written in `apns-topic`.
    public let name: String

    /// Reads a topic; nil if it is empty, too long, or has a character that no topic has.
    /// - Parameter name: The text of `apns-topic`.
    public init?(_ name: some StringProtocol) {
        self.init(utf8: name.utf8)
    }

    /// Reads a topic from its bytes.
    package init?(utf8 bytes: some Collection<UInt8>) {
        // Where they lie: one by one, through the witnesses of another module's collection, costs many times as much.
        let name =
            bytes.withContiguousStorageIfAvailable { Topic.name(in: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { Topic.name(in: $0) }
        guard let name else { return nil }
        self.name = name
    }

    private static func name(in bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard (1...maximumLength).contains(bytes.count) else { return nil }
        var previous = UInt8(ascii: ".")
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                break
            case UInt8(ascii: ".") where previous != UInt8(ascii: "."):
                break
            default:
                return nil
            }
            previous = byte
        }
        guard previous != UInt8(ascii: ".") else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Topic: CustomStringConvertible, Codable {
    /// The topic's name.
    public var description: String { name }

    /// Reads a topic from a JSON string.
    /// - Throws: `DecodingError.dataCorrupted` if the text is no topic.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let topic = Topic(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a topic: \(text)")
        }
        self = topic
    }

    /// Writes the topic as a JSON string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}

/// An app as the service tells apps apart: the same topic in the two environments is two apps.
public struct App: Hashable, Sendable {
    /// The full topic.
    public let topic: Topic
    /// The environment in which the app was registered.
    public let environment: PushEnvironment

    /// Makes an app.
    public init(topic: Topic, environment: PushEnvironment) {
        self.topic = topic
        self.environment = environment
    }
}
