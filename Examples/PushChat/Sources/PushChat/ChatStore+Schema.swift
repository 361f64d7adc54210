import GRDB

extension ChatStore {
    /// The chat's own tables.
    ///
    /// Message numbers are never reused, so that "since" stays valid.
    static let schema = """
        CREATE TABLE IF NOT EXISTS active_users (
            udid TEXT NOT NULL PRIMARY KEY,
            device_token TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            code TEXT NOT NULL,
            -- The newest message when they joined, and the newest that they have seen.
            joined_after INTEGER NOT NULL,
            read_through INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX IF NOT EXISTS active_users_code ON active_users (code);
        CREATE TABLE IF NOT EXISTS messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            code TEXT NOT NULL,
            udid TEXT NOT NULL,
            author TEXT NOT NULL,
            text TEXT NOT NULL,
            -- Seconds since 1970.
            time REAL NOT NULL
        ) STRICT;
        CREATE INDEX IF NOT EXISTS messages_code ON messages (code, id);
        CREATE INDEX IF NOT EXISTS messages_udid ON messages (udid, time);
        """

    /// A row of `active_users`.
    struct User: FetchableRecord, Decodable, Sendable {
        var udid: String
        var token: String
        var name: String
        var code: String
        var joinedAfter: Int64
        var readThrough: Int64

        static let columns = """
            udid, device_token AS token, name, code, joined_after AS joinedAfter, read_through AS readThrough
            """
    }

    /// A message for its readers.
    struct Message: FetchableRecord, Codable, Sendable {
        var id: Int64
        var author: String
        var text: String
        var time: Double
        /// Whether the reader wrote it.
        var mine: Bool
    }

    /// The answer to `GET /api/messages`.
    struct Missed: Codable, Sendable {
        var messages: [Message]
        /// Whether there are more messages.
        var more: Bool
        /// The nicknames in the room.
        var members: [String]
        /// The newest message that the user has seen.
        var read: Int64
    }
}
