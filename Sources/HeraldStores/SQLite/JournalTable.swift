import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `journal`, written by the writer's connection.
struct JournalTable {
    /// Space that a row takes beside its bytes.
    private static let bytesPerRow = 32

    private let insertion: HotStatement
    /// The next row's position: all bytes ever written, with the overhead of each row.
    private(set) var position: Int64

    init(_ database: Database) throws {
        insertion = try HotStatement(
            database,
            sql: "INSERT INTO journal (position, first_time, last_time, events) VALUES (?, ?, ?, ?)"
        )
        position = try JournalTable.end(database)
        // A damaged number would leave no room for later ones.
        guard position < .max / 2 else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the journal is invalid")
        }
    }

    /// Appends rows.
    /// - Returns: The position after them, for ``moved(to:)`` once they are durable.
    /// - Throws: `DatabaseError`.
    func append(_ rows: [JournalRow]) throws -> Int64 {
        var position = position
        for row in rows {
            let bytes = row.bytes
            insertion.bind(position, at: 1)
            insertion.bind(row.firstTime, at: 2)
            insertion.bind(row.lastTime, at: 3)
            try bytes.withUnsafeBytes {
                insertion.bind(borrowed: $0, at: 4)
                try insertion.run()
            }
            position += Int64(bytes.count + JournalTable.bytesPerRow)
        }
        return position
    }

    mutating func moved(to position: Int64) {
        self.position = position
    }

    private static func end(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(
            database,
            sql: """
                SELECT position + ifnull(length(events), 0) + \(bytesPerRow) FROM journal ORDER BY position DESC LIMIT 1
                """
        ) ?? 0
    }

    /// Deletes up to `limit` of the oldest rows: rows whose events are all before `moment`, and rows more than
    /// `maximumBytes` from the end.
    ///
    /// The newest row always stays, because it holds the position. A row with a damaged time goes with the row after it.
    /// - Returns: The number of deleted rows.
    /// - Throws: `DatabaseError`.
    static func trim(
        _ database: Database,
        before moment: WallTime,
        maximumBytes: Int,
        limit: Int,
        damage: DamagedRows
    ) throws -> Int {
        let keptFrom = try end(database) &- Int64(maximumBytes)
        var rows: [(position: Int64, time: Int64?)] = []
        let sql = "SELECT position, last_time FROM journal ORDER BY position LIMIT ?"
        try CheckedRow.forEach(database, sql: sql, [limit + 1]) { row in
            rows.append((try row.integer(0), try damage.leaveOut("journal") { try row.integer(1) }))
        }
        var last: Int64?
        for row in rows.dropLast() {
            if row.position >= keptFrom {
                guard let time = row.time else { continue }
                guard time < moment.milliseconds else { break }
            }
            last = row.position
        }
        guard let last else { return 0 }
        try database.execute(sql: "DELETE FROM journal WHERE position <= ?", arguments: [last])
        return database.changesCount
    }
}
