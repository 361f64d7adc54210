import GRDB
import HTTPTypes
import HeraldModel

/// Rooms, users and messages, and the relay's queue.
///
/// The queue's file is attached to the same connection, so that one transaction stores a message and its notifications. Both
/// files need rollback journals: SQLite commits atomically to several files only then.
struct ChatStore: Sendable {
    let database: DatabaseQueue
    let limits: ChatLimits
    /// The app.
    let topic: Topic

    /// Opens the chat's file, which is created if it is missing, and the relay's, which must exist.
    /// - Throws: ``ChatRefusal``.
    init(path: String, queue: String, topic: Topic, limits: ChatLimits = ChatLimits()) throws {
        self.limits = limits
        self.topic = topic
        var configuration = Configuration()
        // The relay holds the lock for milliseconds at a time.
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { database in
            try database.execute(sql: "ATTACH DATABASE ? AS relay", arguments: [queue])
        }
        do {
            database = try DatabaseQueue(path: path, configuration: configuration)
            try database.write { database in
                guard try database.tableExists("push_queue", in: "relay"),
                    try database.tableExists("devices", in: "relay")
                else { throw ChatRefusal(.serviceUnavailable, ChatStore.noQueue(queue)) }
                try database.execute(sql: ChatStore.schema)
            }
            for schema in ["main", "relay"] {
                let mode = try database.read { try String.fetchOne($0, sql: "PRAGMA \(schema).journal_mode") }
                guard mode == "delete" else {
                    throw ChatRefusal(
                        .serviceUnavailable,
                        "\(schema == "main" ? path : queue) is in the journal mode \(mode ?? "?"): run `PRAGMA journal_mode=delete` on it"
                    )
                }
            }
        } catch let error as DatabaseError {
            throw ChatRefusal(
                .serviceUnavailable,
                "cannot open \(path) and \(queue): \(error.message ?? error.description)"
            )
        }
    }

    private static func noQueue(_ path: String) -> String {
        "\(path) has no relay's tables: start `herald relay run --database sqlite://\(path)` first"
    }

    // MARK: - Commands

    /// Joins a room, and leaves the former one.
    /// - Returns: The newest message; the user sees later ones.
    func join(
        _ udid: UDID,
        _ token: DeviceToken,
        name: String,
        code: String,
        languages: ChatLanguages?
    ) async throws -> Int64 {
        try await database.write { database in
            // An app that was installed again may have the same token and another udid. It replaces its former user.
            try remove("device_token = ? AND udid <> ?", [token.hex, udid.hex], database)
            let present = try user(udid, database)
            if present?.code != code {
                try refuseFull(code, present: present != nil, database)
            }
            let newest = try newest(database)
            let stays = present?.code == code
            try database.execute(
                sql: """
                    INSERT INTO active_users (udid, device_token, name, code, joined_after, read_through)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?5)
                    ON CONFLICT (udid) DO UPDATE SET device_token = ?2, name = ?3, code = ?4,
                    joined_after = iif(?6, joined_after, ?5), read_through = iif(?6, read_through, ?5)
                    """,
                arguments: [udid.hex, token.hex, name, code, newest, stays]
            )
            if let present, !stays { try empty(present.code, database) }
            try register(token, languages, database)
            return stays ? present?.joinedAfter ?? newest : newest
        }
    }

    /// Leaves the room.
    func leave(_ udid: UDID) async throws {
        try await database.write { database in
            guard try remove("udid = ?", [udid.hex], database) > 0 else { throw ChatRefusal.notInRoom }
        }
    }

    /// Stores a message, and queues a notification for each other user in the room.
    /// - Returns: The number of the message.
    func say(_ udid: UDID, _ text: String, now: Double) async throws -> Int64 {
        try await database.write { database in
            let author = try require(udid, database)
            let since = now - limits.window
            let count = try Int.fetchOne(
                database,
                sql: "SELECT count(*) FROM messages WHERE udid = ? AND time > ?",
                arguments: [author.udid, since]
            )
            guard (count ?? 0) < limits.messagesInWindow else {
                throw ChatRefusal(
                    .tooManyRequests,
                    "that is \(limits.messagesInWindow) messages in \(Int(limits.window)) seconds: wait a little"
                )
            }
            try database.execute(
                sql: "INSERT INTO messages (code, udid, author, text, time) VALUES (?, ?, ?, ?, ?)",
                arguments: [author.code, author.udid, author.name, text, now]
            )
            let id = database.lastInsertedRowID
            try database.execute(
                sql: """
                    DELETE FROM messages WHERE code = ?1 AND id <= (
                        SELECT id FROM messages WHERE code = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
                    """,
                arguments: [author.code, limits.messagesInRoom]
            )
            try notify(of: text, id, from: author, database)
            return id
        }
    }

    /// Updates the token, the languages, or the newest message that the user has seen.
    func update(_ udid: UDID, token: DeviceToken?, languages: ChatLanguages?, read: Int64?) async throws {
        try await database.write { database in
            let user = try require(udid, database)
            if let token {
                try remove("device_token = ? AND udid <> ?", [token.hex, udid.hex], database)
                try database.execute(
                    sql: "UPDATE active_users SET device_token = ? WHERE udid = ?",
                    arguments: [token.hex, user.udid]
                )
                try register(token, languages, database)
            } else if let languages {
                try note(languages, of: user.token, database)
            }
            if let read {
                let newest = try newest(database)
                try database.execute(
                    sql: "UPDATE active_users SET read_through = max(read_through, ?) WHERE udid = ?",
                    arguments: [min(read, newest), user.udid]
                )
            }
        }
    }

    // MARK: - Messages

    /// The messages in the user's room after a given one, and after the user has joined; without one, the newest.
    func missed(_ udid: UDID, since: Int64?) async throws -> Missed {
        try await database.read { database in
            let user = try require(udid, database)
            let isNewest = since == nil
            var messages = try Message.fetchAll(
                database,
                sql: """
                    SELECT id, author, text, time, udid = ? AS mine FROM messages WHERE code = ? AND id > ?
                    ORDER BY id \(isNewest ? "DESC" : "ASC") LIMIT ?
                    """,
                arguments: [user.udid, user.code, max(since ?? 0, user.joinedAfter), limits.messagesInAnswer + 1]
            )
            let more = messages.count > limits.messagesInAnswer
            if more { messages.removeLast() }
            if isNewest { messages.reverse() }
            let members = try String.fetchAll(
                database,
                sql: "SELECT name FROM active_users WHERE code = ? ORDER BY name, udid",
                arguments: [user.code]
            )
            return Missed(messages: messages, more: more && !isNewest, members: members, read: user.readThrough)
        }
    }

    // MARK: - Queries

    private func user(_ udid: UDID, _ database: Database) throws -> User? {
        try User.fetchOne(
            database,
            sql: "SELECT \(User.columns) FROM active_users WHERE udid = ?",
            arguments: [udid.hex]
        )
    }

    private func require(_ udid: UDID, _ database: Database) throws -> User {
        guard let user = try user(udid, database) else { throw ChatRefusal.notInRoom }
        return user
    }

    private func newest(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(database, sql: "SELECT seq FROM sqlite_sequence WHERE name = 'messages'") ?? 0
    }

    private func refuseFull(_ code: String, present: Bool, _ database: Database) throws {
        let sql = "SELECT count(*) FROM active_users"
        let inRoom = try Int.fetchOne(database, sql: sql + " WHERE code = ?", arguments: [code]) ?? 0
        guard inRoom < limits.usersInRoom else {
            throw ChatRefusal(.conflict, "the room is full: \(limits.usersInRoom) are in it")
        }
        guard try present || Int.fetchOne(database, sql: sql) ?? 0 < limits.users else {
            throw ChatRefusal(.serviceUnavailable, "PushChat is full: \(limits.users) are here")
        }
    }

    /// Removes users, and the messages of rooms that become empty.
    @discardableResult
    func remove(_ condition: String, _ arguments: StatementArguments, _ database: Database) throws -> Int {
        let codes = try String.fetchAll(
            database,
            sql: "DELETE FROM active_users WHERE \(condition) RETURNING code",
            arguments: arguments
        )
        for code in Set(codes) { try empty(code, database) }
        return codes.count
    }

    private func empty(_ code: String, _ database: Database) throws {
        try database.execute(
            sql: "DELETE FROM messages WHERE code = ?1 AND NOT EXISTS (SELECT 1 FROM active_users WHERE code = ?1)",
            arguments: [code]
        )
    }
}
