import GRDB
import HeraldModel

/// The queries on the relay's tables.
extension ChatStore {
    /// Queues a message's notification for everybody in the room but its author.
    ///
    /// One row for each notification is all that the relay needs.
    func notify(of text: String, _ id: Int64, from author: User, _ database: Database) throws {
        let others = try User.fetchAll(
            database,
            sql: "SELECT \(User.columns) FROM active_users WHERE code = ? AND udid <> ?",
            arguments: [author.code, author.udid]
        )
        for other in others {
            let payload = ChatPayload(
                author: author.name,
                text: text,
                title: ChatWords.title(try languages(of: other.token, database)),
                badge: try unread(other, database),
                message: id
            )
            try database.execute(
                sql: "INSERT INTO relay.push_queue (device_token, topic, payload) VALUES (?, ?, ?)",
                arguments: [other.token, topic.name, try payload.json(limit: limits.payloadBytes)]
            )
        }
    }

    /// The number of messages of others that a user has not seen.
    private func unread(_ user: User, _ database: Database) throws -> Int {
        try Int.fetchOne(
            database,
            sql: """
                SELECT count(*) FROM (SELECT 1 FROM messages WHERE code = ? AND id > ? AND udid <> ? LIMIT ?)
                """,
            arguments: [user.code, user.readThrough, user.udid, limits.badge]
        ) ?? 0
    }

    /// Notes that a token is alive.
    ///
    /// Earlier reports that it is dead do not count any more.
    func register(_ token: DeviceToken, _ languages: ChatLanguages?, _ database: Database) throws {
        try database.execute(
            sql: """
                INSERT INTO relay.devices (device_token, topic) VALUES (?, ?)
                ON CONFLICT (device_token, topic) DO UPDATE SET
                registered_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), dead_at = NULL, held_at = NULL, evidence = NULL
                """,
            arguments: [token.hex, topic.name]
        )
        if let languages { try note(languages, of: token.hex, database) }
    }

    /// Notes the languages of the user who has a token.
    func note(_ languages: ChatLanguages, of token: String, _ database: Database) throws {
        try database.execute(
            sql: "UPDATE relay.devices SET languages = ? WHERE device_token = ? AND topic = ?",
            arguments: [languages.text, token, topic.name]
        )
    }

    /// The languages of the user who has a token; nil if they are unknown.
    private func languages(of token: String, _ database: Database) throws -> ChatLanguages? {
        try String.fetchOne(
            database,
            sql: "SELECT languages FROM relay.devices WHERE device_token = ? AND topic = ?",
            arguments: [token, topic.name]
        )
        .flatMap { ChatLanguages($0) }
    }

    /// Removes the users whose token is dead according to the relay.
    /// - Returns: Their number.
    func forgetDead() async throws -> Int {
        let dead = """
            EXISTS (SELECT 1 FROM relay.devices AS device WHERE device.device_token = active_users.device_token
            AND device.topic = ? AND device.dead_at IS NOT NULL
            AND (device.registered_at IS NULL OR device.registered_at <= device.dead_at))
            """
        let topic = topic.name
        // The read takes no lock that others wait for.
        let count = try await database.read { database in
            try Int.fetchOne(
                database,
                sql: "SELECT count(*) FROM active_users WHERE \(dead)",
                arguments: [topic]
            ) ?? 0
        }
        guard count > 0 else { return 0 }
        return try await database.write { try remove(dead, [topic], $0) }
    }
}
