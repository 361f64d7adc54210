/// Configuration of a stream.
///
/// Fields of the server that are missing here get the server's defaults.
package struct StreamConfiguration: Hashable, Sendable, Codable {
    package enum Storage: String, Hashable, Sendable, Codable {
        case file
        case memory
    }

    /// Action at a limit of the whole stream: drop the oldest message, or refuse the new one.
    package enum Discard: String, Hashable, Sendable, Codable {
        case old
        case new
    }

    package var name: String
    package var subjects: [String]
    package var storage: Storage = .file
    package var replicas = 1
    package var discard: Discard = .old
    /// Messages for each subject; -1: unlimited.
    package var messagesPerSubject = -1
    /// Messages in all; -1: unlimited.
    package var messages = -1
    /// Bytes in all; -1: unlimited.
    package var bytes = -1
    /// Largest message, in bytes; -1: as the server allows.
    package var messageBytes = -1
    /// Age at which messages are removed, in nanoseconds; 0: never.
    package var ageNanoseconds: Int64 = 0
    /// Time in which a repeated message identifier is a duplicate, in nanoseconds; 0: the server's default.
    package var duplicateNanoseconds: Int64 = 0
    /// Sequence of the first message; 0: 1.
    ///
    /// Only at the creation.
    package var firstSequence: UInt64 = 0
    /// Whether every replica answers reads.
    package var allowsDirectReads = true
    /// Whether messages may have a time to live of their own.
    package var allowsTimeToLive = false
    /// Whether the deletion of single messages is refused.
    package var deniesDelete = false
    /// Whether a purge is refused.
    package var deniesPurge = false
    /// Notes of the stream's owner.
    ///
    /// The server adds its own, which begin with `_nats.`.
    package var metadata: [String: String] = [:]

    package init(name: String, subjects: [String]) {
        self.name = name
        self.subjects = subjects
    }

    private enum CodingKeys: String, CodingKey {
        case name, subjects, storage, discard, metadata
        case replicas = "num_replicas"
        case messagesPerSubject = "max_msgs_per_subject"
        case messages = "max_msgs"
        case bytes = "max_bytes"
        case messageBytes = "max_msg_size"
        case ageNanoseconds = "max_age"
        case duplicateNanoseconds = "duplicate_window"
        case firstSequence = "first_seq"
        case allowsDirectReads = "allow_direct"
        case allowsTimeToLive = "allow_msg_ttl"
        case deniesDelete = "deny_delete"
        case deniesPurge = "deny_purge"
    }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        func value<Value: Decodable>(_ key: CodingKeys, _ standard: Value) throws -> Value {
            try fields.decodeIfPresent(Value.self, forKey: key) ?? standard
        }
        name = try fields.decode(String.self, forKey: .name)
        subjects = try value(.subjects, [])
        storage = try value(.storage, .file)
        replicas = try value(.replicas, 1)
        discard = try value(.discard, .old)
        messagesPerSubject = try value(.messagesPerSubject, -1)
        messages = try value(.messages, -1)
        bytes = try value(.bytes, -1)
        messageBytes = try value(.messageBytes, -1)
        ageNanoseconds = try value(.ageNanoseconds, 0)
        duplicateNanoseconds = try value(.duplicateNanoseconds, 0)
        firstSequence = try value(.firstSequence, 0)
        allowsDirectReads = try value(.allowsDirectReads, false)
        allowsTimeToLive = try value(.allowsTimeToLive, false)
        deniesDelete = try value(.deniesDelete, false)
        deniesPurge = try value(.deniesPurge, false)
        metadata = try value(.metadata, [:])
    }
}
