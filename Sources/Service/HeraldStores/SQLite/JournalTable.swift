import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `journal`, written by the writer's connection.
struct JournalTable {
    /// Space that a row takes beside its bytes.
    private static let bytesPerRow = 32

    private let insertion: HotStatement
    private let digestInsertion: HotStatement
    /// The digest of the chunk that ``position`` is in.
    ///
    /// A failed commit may leave bits in it, which only make searches read more.
    private var digest: JournalDigest
    /// The digest that follows once the commit is durable, which filled the chunk.
    private var nextDigest: JournalDigest?
    /// The next row's position: all bytes ever written, with the overhead of each row.
    private(set) var position: Int64

    /// Reads the open chunk on the writer's connection; `found` gets its lines, with the positions of their rows.
    /// - Throws: `DatabaseError`.
    init(_ database: Database, _ found: (JournalEvent, Int64) -> Void) throws {
        insertion = try HotStatement(
            database,
            sql: "INSERT INTO journal (position, first_time, last_time, events) VALUES (?, ?, ?, ?)"
        )
        digestInsertion = try HotStatement(database, sql: "INSERT INTO journal_digest (number, bits) VALUES (?, ?)")
        position = try JournalTable.end(database)
        // A damaged number would leave no room for later ones.
        guard position < .max / 2 else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the journal is invalid")
        }
        digest = try JournalTable.openDigest(database, at: position, found)
    }

    /// Appends rows.
    /// - Returns: The position after them, for ``moved(to:)`` once they are durable.
    /// - Throws: `DatabaseError`.
    mutating func append(_ rows: [JournalRow]) throws -> Int64 {
        var position = position
        nextDigest = nil
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
            if nextDigest == nil { digest.add(row.keys) } else { nextDigest?.add(row.keys) }
            try sealDigest(before: position)
        }
        return position
    }

    mutating func moved(to position: Int64) {
        self.position = position
        if let nextDigest { digest = nextDigest }
        nextDigest = nil
    }

    /// Stores the digest of a chunk that the journal has left.
    private mutating func sealDigest(before position: Int64) throws {
        let chunk = JournalDigest.chunk(of: position)
        guard chunk > nextDigest?.chunk ?? digest.chunk else { return }
        for row in (nextDigest ?? digest).rows {
            digestInsertion.bind(row.number, at: 1)
            try row.bits.withUnsafeBytes {
                digestInsertion.bind(borrowed: $0, at: 2)
                try digestInsertion.run()
            }
        }
        nextDigest = JournalDigest(chunk: chunk)
    }

    /// The digest of the chunk that is not full, read from its rows.
    private static func openDigest(
        _ database: Database,
        at position: Int64,
        _ found: (JournalEvent, Int64) -> Void
    ) throws -> JournalDigest {
        var digest = JournalDigest(chunk: JournalDigest.chunk(of: position))
        let rows = try HotStatement(database, sql: "SELECT events, position FROM journal WHERE position >= ?")
        rows.bind(JournalDigest.start(of: digest.chunk), at: 1)
        try rows.forEachRow { row in
            var keys = JournalKeys()
            let position = row.integer(1)
            _ = JournalRow.read(row.bytes(0)) { event in
                keys.add(event)
                found(event, position)
            }
            digest.add(keys)
            return true
        }
        // A digest of a chunk that is not full is not from this journal.
        let first = JournalDigest.rowNumber(digest.chunk, slice: 0)
        let newest = try Int64.fetchOne(database, sql: "SELECT max(number) FROM journal_digest") ?? .min
        if newest >= first {
            try database.execute(sql: "DELETE FROM journal_digest WHERE number >= ?", arguments: [first])
        }
        return digest
    }

    private static func end(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(
            database,
            sql: """
                SELECT position + ifnull(length(events), 0) + \(bytesPerRow) FROM journal ORDER BY position DESC LIMIT 1
                """
        ) ?? 0
    }

    /// The times of the oldest line and of the newest one.
    /// - Returns: nil if there are no rows, or those two are damaged.
    /// - Throws: `DatabaseError`.
    static func span(_ database: Database) throws -> (first: WallTime, last: WallTime)? {
        func time(_ column: String, _ order: String) throws -> WallTime? {
            try Int64.fetchOne(database, sql: "SELECT \(column) FROM journal ORDER BY position \(order) LIMIT 1")
                .map { WallTime(milliseconds: $0) }
        }
        guard let first = try time("first_time", "ASC"), let last = try time("last_time", "DESC") else { return nil }
        return (first, last)
    }

    /// The time since which no row has been deleted.
    /// - Returns: nil if no row has ever been deleted.
    /// - Throws: `DatabaseError`.
    static func completeSince(_ database: Database) throws -> WallTime? {
        let first = try Int64.fetchOne(database, sql: "SELECT position FROM journal ORDER BY position LIMIT 1")
        // The first row of all has the position 0.
        guard let first, first > 0 else { return nil }
        let time = try Int64.fetchOne(
            database,
            sql: "SELECT first_time FROM journal WHERE typeof(first_time) = 'integer' ORDER BY position LIMIT 1"
        )
        return WallTime(milliseconds: time ?? .max)
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
        let count = database.changesCount
        // All rows of earlier chunks are gone.
        let kept = JournalDigest.rowNumber(JournalDigest.chunk(of: last), slice: 0)
        try database.execute(sql: "DELETE FROM journal_digest WHERE number < ?", arguments: [kept])
        return count
    }
}
