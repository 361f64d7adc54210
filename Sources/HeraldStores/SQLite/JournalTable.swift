import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `journal`, written by the writer's connection.
struct JournalTable {
    /// What a row takes beside its bytes.
    private static let bytesPerRow = 32

    private let insertion: HotStatement
    /// How many bytes were ever written, with those of the rows themselves: the next row's position.
    private(set) var position: Int64

    init(_ database: Database) throws {
        insertion = try HotStatement(
            database,
            sql: "INSERT INTO journal (position, first_time, last_time, fingerprints, events) VALUES (?, ?, ?, x'', ?)"
        )
        position = try JournalTable.end(database)
    }

    /// Writes rows.
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
                SELECT position + length(fingerprints) + length(events) + \(bytesPerRow) FROM journal
                ORDER BY position DESC LIMIT 1
                """
        ) ?? 0
    }

    /// Deletes up to `limit` of the oldest rows: those whose lines are all before `moment`, and those that are more
    /// than `maximumBytes` from the end.
    ///
    /// The newest row always stays, since it holds the position.
    /// - Returns: How many.
    /// - Throws: `DatabaseError`.
    static func trim(_ database: Database, before moment: WallTime, maximumBytes: Int, limit: Int) throws -> Int {
        let keptFrom = try end(database) - Int64(maximumBytes)
        let rows = try Row.fetchAll(
            database,
            sql: "SELECT position, last_time FROM journal ORDER BY position LIMIT ?",
            arguments: [limit + 1]
        )
        var last: Int64?
        var count = 0
        for row in rows.dropLast() {
            let position: Int64 = row["position"]
            let time: Int64 = row["last_time"]
            guard position < keptFrom || time < moment.milliseconds else { break }
            last = position
            count += 1
        }
        guard let last else { return 0 }
        try database.execute(sql: "DELETE FROM journal WHERE position <= ?", arguments: [last])
        return count
    }
}
