import Crypto
import HeraldModel

/// The last thousand notifications that a device has reported, to find duplicates whose acknowledgement was lost.
///
/// Codable, to be kept over restarts.
public struct SeenNotifications: Hashable, Sendable {
    /// The key of a notification: its `apns-id`, and a digest of topic and payload, because a provider may choose the same
    /// identifier twice.
    public struct Key: Hashable, Sendable {
        let id: NotificationID
        let digest: [UInt8]

        /// The key of a notification; nil for one without an identifier.
        public init?(_ notification: ReceivedNotification) {
            guard let id = notification.id else { return nil }
            self.id = id
            var hash = SHA256()
            hash.update(data: Array(notification.topic.name.utf8))
            // A zero is in no topic.
            hash.update(data: [0])
            hash.update(data: notification.payload)
            digest = Array(hash.finalize())
        }

        fileprivate init?(_ text: String) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, let id = NotificationID(parts[0]), let digest = Hex.bytes(parts[1]),
                digest.count == 32
            else { return nil }
            self.id = id
            self.digest = digest
        }

        /// `<apns-id>/<64 hexadecimal digits>`.
        fileprivate var text: String { "\(id)/\(Hex.text(digest))" }
    }

    /// The most notifications to remember.
    public let limit: Int
    private var keys: Set<Key> = []
    /// Oldest first, from `first` on.
    private var order: [Key] = []
    private var first = 0

    /// Creates an empty set.
    public init(limit: Int = 1000) {
        self.limit = max(1, limit)
    }

    /// The number of remembered notifications.
    public var count: Int { keys.count }

    /// Whether a notification is remembered.
    public func contains(_ key: Key) -> Bool {
        keys.contains(key)
    }

    /// Remembers a notification, and drops the oldest above the limit.
    public mutating func insert(_ key: Key) {
        guard keys.insert(key).inserted else { return }
        order.append(key)
        guard keys.count > limit else { return }
        keys.remove(order[first])
        first += 1
        guard first >= limit else { return }
        order.removeFirst(first)
        first = 0
    }
}

extension SeenNotifications: Codable {
    /// Reads a list of texts, oldest first.
    ///
    /// Malformed texts are skipped, and only the newest thousand are read.
    /// - Throws: `DecodingError` if it is not a list of texts.
    public init(from decoder: any Decoder) throws {
        self.init()
        for text in try decoder.singleValueContainer().decode([String].self).suffix(limit) {
            if let key = Key(text) { insert(key) }
        }
    }

    /// Writes a list of texts, oldest first.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(order[first...].map(\.text))
    }
}
