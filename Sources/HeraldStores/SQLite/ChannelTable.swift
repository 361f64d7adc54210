import Foundation
import GRDB
import HeraldMailbox
import HeraldModel

/// The tables of broadcast channels.
///
/// Statements are cached by GRDB; a broadcast is written here once, however many devices it goes to.
enum ChannelTable {
    // Channels.

    static func load(_ database: Database) throws -> [StoredChannel] {
        let rows = try Row.fetchAll(
            database,
            sql: """
                SELECT channel.id AS channel, app, storage, created, broadcast.number AS number, broadcast.id AS id,
                    unique_id, received, stored_until, priority, payload
                FROM channel LEFT JOIN broadcast ON broadcast.channel = channel.number ORDER BY channel.number
                """
        )
        return try rows.map { row in
            let channel = BroadcastChannel(
                id: try channelID(row["channel"]),
                app: AppNumber(try read(UInt32(exactly: row["app"] as Int64))),
                storage: try read(MessageStoragePolicy(rawValue: try read(UInt8(exactly: row["storage"] as Int64)))),
                created: WallTime(milliseconds: row["created"])
            )
            let newest = row["number"] == nil ? nil : try broadcast(row, channel)
            return StoredChannel(channel: channel, newest: newest)
        }
    }

    static func create(_ channel: BroadcastChannel, _ database: Database) throws {
        try database.cachedStatement(sql: "INSERT INTO channel (id, app, storage, created) VALUES (?, ?, ?, ?)")
            .execute(arguments: [
                Data(channel.id.bytes), Int64(channel.app.value), Int64(channel.storage.rawValue),
                channel.created.milliseconds,
            ])
    }

    /// - Returns: What it stored.
    static func delete(_ id: ChannelID, _ database: Database) throws -> Broadcast? {
        guard let number = try number(of: id, database) else { return nil }
        let stored = try newest(of: number, database)
        try database.cachedStatement(sql: "DELETE FROM broadcast WHERE channel = ?").execute(arguments: [number])
        try database.cachedStatement(sql: "DELETE FROM channel WHERE number = ?").execute(arguments: [number])
        return stored
    }

    // Messages.

    /// What became of a message that was to be kept.
    enum Keeping {
        case kept(inPlaceOf: Broadcast?)
        /// The channel has a newer one, or is gone.
        case superseded
    }

    static func keep(_ broadcast: Broadcast, until storedUntil: WallTime, _ database: Database) throws -> Keeping {
        guard let number = try number(of: broadcast.channel, database) else { return .superseded }
        let older = try newest(of: number, database)
        guard older.map({ $0.number < broadcast.number }) ?? true else { return .superseded }
        try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO broadcast
                    (channel, number, id, unique_id, received, stored_until, priority, payload)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            number, Int64(bitPattern: broadcast.number), data(broadcast.id), data(broadcast.uniqueID),
            broadcast.received.milliseconds, storedUntil.milliseconds, Int64(broadcast.priority.rawValue),
            Data(broadcast.payload),
        ])
        return .kept(inPlaceOf: older)
    }

    /// - Returns: What was taken away.
    static func removeExpired(at moment: WallTime, limit: Int, _ database: Database) throws -> [Broadcast] {
        let rows = try Row.fetchAll(
            database,
            sql: "\(selection) WHERE stored_until <= ? LIMIT ?",
            arguments: [moment.milliseconds, limit]
        )
        let expired = try rows.map { try broadcast($0) }
        let deletion = try database.cachedStatement(sql: "DELETE FROM broadcast WHERE channel = ?")
        for row in rows { try deletion.execute(arguments: [row["channel_number"] as Int64]) }
        return expired
    }

    private static let selection = """
        SELECT channel.number AS channel_number, channel.id AS channel, app, storage, created,
            broadcast.number AS number, broadcast.id AS id, unique_id, received, stored_until, priority, payload
        FROM broadcast JOIN channel ON broadcast.channel = channel.number
        """

    private static func newest(of number: Int64, _ database: Database) throws -> Broadcast? {
        let statement = try database.cachedStatement(sql: "\(selection) WHERE broadcast.channel = ?")
        return try Row.fetchOne(statement, arguments: [number]).map { try broadcast($0) }
    }

    private static func number(of id: ChannelID, _ database: Database) throws -> Int64? {
        let statement = try database.cachedStatement(sql: "SELECT number FROM channel WHERE id = ?")
        return try Int64.fetchOne(statement, arguments: [Data(id.bytes)])
    }

    // Rows.

    private static func broadcast(_ row: Row, _ channel: BroadcastChannel? = nil) throws -> Broadcast {
        Broadcast(
            channel: try channel?.id ?? channelID(row["channel"]),
            app: AppNumber(try read(UInt32(exactly: row["app"] as Int64))),
            number: UInt64(bitPattern: row["number"] as Int64),
            id: try notificationID(row["id"]),
            uniqueID: try notificationID(row["unique_id"]),
            received: WallTime(milliseconds: row["received"]),
            storedUntil: WallTime(milliseconds: row["stored_until"]),
            priority: try read(Priority(rawValue: try read(UInt8(exactly: row["priority"] as Int64)))),
            payload: Array(row["payload"] as Data)
        )
    }

    private static func data(_ id: NotificationID) -> Data {
        Data(ChannelID(high: id.high, low: id.low).bytes)
    }

    private static func channelID(_ data: Data) throws -> ChannelID {
        let id = try notificationID(data)
        return ChannelID(high: id.high, low: id.low)
    }

    private static func notificationID(_ data: Data) throws -> NotificationID {
        guard data.count == 16 else { return try read(nil) }
        return NotificationID(
            high: data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
            low: data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
        )
    }

    /// What was written was well-formed; if it no longer is, the file is damaged.
    private static func read<Value>(_ value: Value?) throws -> Value {
        guard let value else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of a channel makes no sense")
        }
        return value
    }
}
