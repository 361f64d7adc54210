import GRDB
import HeraldMailbox
import HeraldModel

/// Searches the journal, newest row first, a bounded number of rows at a time.
///
/// A long read would keep the write-ahead log from starting over.
struct JournalSearch: Sendable {
    /// Rows that one step reads.
    static let rowsPerStep = 256

    let query: JournalQuery
    let limit: Int
    /// Matching events so far, newest first.
    private(set) var found: [JournalEvent] = []
    /// Rows before this position are still to be read; nil at the end.
    private(set) var position: Int64? = .max
    /// Rows that could not be read.
    private(set) var damagedRows = 0

    init(query: JournalQuery, limit: Int) {
        self.query = query
        self.limit = max(0, limit)
    }

    var isFinished: Bool { position == nil || found.count >= limit }

    /// Reads the next rows.
    /// - Throws: `DatabaseError`.
    mutating func step(_ database: Database) throws {
        guard let before = position, !isFinished else { return }
        let rows = try HotStatement(
            database,
            sql: """
                SELECT position, events FROM journal
                WHERE position < ? ORDER BY position DESC LIMIT \(JournalSearch.rowsPerStep)
                """,
            isCached: true
        )
        rows.bind(before, at: 1)
        var count = 0
        try rows.forEachRow { row in
            count += 1
            position = row.integer(0)
            collect(row)
            return found.count < limit
        }
        if count < JournalSearch.rowsPerStep, found.count < limit { position = nil }
    }

    private mutating func collect(_ row: HotRow) {
        let bytes = row.bytes(1)
        switch query {
        case .notification(let id): guard JournalRow.mayContain(id, bytes) else { return }
        case .topicWithoutApp(let topic): guard JournalRow.mayContain(topic, bytes) else { return }
        case .device, .app: break
        }
        var matching: [JournalEvent] = []
        guard JournalRow.read(bytes, { if matches($0) { matching.append($0) } }) else {
            damagedRows += 1
            return
        }
        found += matching.suffix(limit - found.count).reversed()
    }

    private func matches(_ event: JournalEvent) -> Bool {
        switch query {
        case .notification(let id): event.id == id || event.uniqueID == id
        case .device(let device): event.device == device
        case .app(let app): event.app == app
        case .topicWithoutApp(let topic): event.refusal?.topic == topic.name
        }
    }
}
