/// The topic of a notification (`apns-topic`): an app's bundle identifier, with a suffix for some push types.
///
/// 1 to 200 bytes of `A` to `Z`, `a` to `z`, `0` to `9`, `-`, `_` and `.`, without a `.` at either end or two in a row:
/// `com.example.chat.voip`. So a topic can be part of an MQTT topic name or a file name without escaping.
public struct Topic: Hashable, Sendable {
    /// The longest topic, in bytes.
    public static let maximumLength = 200

    /// The topic as it is written in `apns-topic`.
    public let name: String

    /// Reads a topic; nil if it is empty, too long, or has an invalid character.
    /// - Parameter name: The text of `apns-topic`.
    public init?(_ name: some StringProtocol) {
        self.init(utf8: name.utf8)
    }

    /// Reads a topic from its bytes.
    package init?(utf8 bytes: some Collection<UInt8>) {
        // In place: a generic collection of another module costs many times as much.
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
            guard byte.isASCIINameByte, byte != UInt8(ascii: ".") || previous != byte else { return nil }
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
    /// - Throws: `DecodingError.dataCorrupted` if the text is not a topic.
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

/// A topic in one environment: the same topic in both environments is two apps.
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
