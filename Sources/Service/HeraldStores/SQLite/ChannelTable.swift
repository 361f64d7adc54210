import Foundation
import GRDB
import HeraldMailbox
import HeraldModel

/// Reads and writes the tables `channel` and `broadcast`.
///
/// GRDB caches the statements. A broadcast is written once, however many devices it goes to.
enum ChannelTable {
    // MARK: - Channels

    /// Reads all channels; one with a damaged message has none.
    static func load(_ database: Database, _ damage: DamagedRows) throws -> [StoredChannel] {
        let sql = """
            SELECT \(columns), storage, created
            FROM channel LEFT JOIN broadcast ON broadcast.channel = channel.number ORDER BY channel.number
            """
        return try damage.valid(of: "channel", database, sql: sql) { row in
            let channel = BroadcastChannel(
                id: try channelID(row),
                app: AppNumber(try row.number(2)),
                storage: try CheckedRow.valid(MessageStoragePolicy(rawValue: try row.number(10))),
                created: try row.time(11)
            )
            let newest = row.isNull(0) ? nil : try damage.leaveOut("broadcast") { try broadcast(row) }
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

    /// - Returns: The message that the channel stored.
    static func delete(_ id: ChannelID, _ database: Database, _ damage: DamagedRows) throws -> Broadcast? {
        guard let number = try number(of: id, database) else { return nil }
        let stored = try newest(of: number, database, damage)
        try database.cachedStatement(sql: "DELETE FROM broadcast WHERE channel = ?").execute(arguments: [number])
        try database.cachedStatement(sql: "DELETE FROM channel WHERE number = ?").execute(arguments: [number])
        return stored
    }

    // MARK: - Messages

    /// The result of storing a message.
    enum StoreResult {
        case stored(replacing: Broadcast?)
        /// The channel has a newer one, or is gone.
        case superseded
    }

    static func store(
        _ broadcast: Broadcast,
        until storedUntil: WallTime,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> StoreResult {
        guard let number = try number(of: broadcast.channel, database) else { return .superseded }
        let older = try newest(of: number, database, damage)
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
        return .stored(replacing: older)
    }

    /// Removes expired messages, damaged ones too: left in the table, they would fill the limit of each sweep.
    /// - Returns: The valid messages among the removed, and the number of all.
    static func removeExpired(
        at moment: WallTime,
        limit: Int,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> (valid: [Broadcast], count: Int) {
        var numbers: [Int64] = []
        var valid: [Broadcast] = []
        let sql = "SELECT \(columns) FROM broadcast LEFT \(join) WHERE stored_until <= ? LIMIT ?"
        try CheckedRow.forEach(database, sql: sql, [moment.milliseconds, limit]) { row in
            numbers.append(try row.integer(0))
            if let broadcast = try damage.leaveOut("broadcast", { try broadcast(row) }) { valid.append(broadcast) }
        }
        let deletion = try database.cachedStatement(sql: "DELETE FROM broadcast WHERE channel = ?")
        for number in numbers { try deletion.execute(arguments: [number]) }
        return (valid, numbers.count)
    }

    private static let join = "JOIN channel ON broadcast.channel = channel.number"

    /// - Returns: nil also for a damaged message, which a newer one then replaces.
    private static func newest(of number: Int64, _ database: Database, _ damage: DamagedRows) throws -> Broadcast? {
        let sql = "SELECT \(columns) FROM broadcast \(join) WHERE broadcast.channel = ?"
        return try damage.valid(of: "broadcast", database, sql: sql, [number]) { try broadcast($0) }.first
    }

    private static func number(of id: ChannelID, _ database: Database) throws -> Int64? {
        let statement = try database.cachedStatement(sql: "SELECT number FROM channel WHERE id = ?")
        return try Int64.fetchOne(statement, arguments: [Data(id.bytes)])
    }

    // MARK: - Rows

    /// The columns of a message and its channel.
    private static let columns = """
        broadcast.channel, channel.id, app, broadcast.number, broadcast.id, unique_id, received, stored_until, priority,
        payload
        """

    /// Reads the columns of ``columns``.
    private static func broadcast(_ row: CheckedRow) throws -> Broadcast {
        Broadcast(
            channel: try channelID(row),
            app: AppNumber(try row.number(2)),
            number: UInt64(bitPattern: try row.integer(3)),
            id: try notificationID(row.bytes(4)),
            uniqueID: try notificationID(row.bytes(5)),
            received: try row.time(6),
            storedUntil: try row.time(7),
            priority: try CheckedRow.valid(Priority(rawValue: try row.number(8))),
            payload: try row.bytes(9)
        )
    }

    private static func data(_ id: NotificationID) -> Data {
        Data(ChannelID(high: id.high, low: id.low).bytes)
    }

    private static func channelID(_ row: CheckedRow) throws -> ChannelID {
        try CheckedRow.valid(ChannelID(bytes: try row.bytes(1)))
    }

    private static func notificationID(_ bytes: [UInt8]) throws -> NotificationID {
        let words = try CheckedRow.valid(ChannelID(bytes: bytes))
        return NotificationID(high: words.high, low: words.low)
    }
}
