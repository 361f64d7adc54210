import GRDB
import HeraldMailbox
import HeraldModel

/// A search through the journal, newest row first, a bounded number of rows at a time: a long read would keep the
/// write-ahead log from starting over.
struct JournalSearch: Sendable {
    /// How many rows one step reads.
    static let rowsPerStep = 256

    let query: JournalQuery
    let limit: Int
    /// What was found so far, newest first.
    private(set) var found: [JournalEvent] = []
    /// Rows before this position are still to be read; nil at the end.
    private(set) var position: Int64? = .max
    /// How many rows make no sense.
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
                SELECT position, length(fingerprints), events FROM journal
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
        let bytes = row.bytes(2)
        let isFormer = row.integer(1) > 0
        if case .notification(let id) = query, !isFormer, !JournalRow.mayTell(of: id, bytes) { return }
        var matching: [JournalEvent] = []
        func note(_ event: JournalEvent) {
            if matches(event) { matching.append(event) }
        }
        let isWhole = isFormer ? FormerJournalRow.read(bytes, note) : JournalRow.read(bytes, note)
        if !isWhole {
            damagedRows += 1
            // Of the former form each line stands for itself.
            guard isFormer else { return }
        }
        found += matching.suffix(limit - found.count).reversed()
    }

    private func matches(_ event: JournalEvent) -> Bool {
        switch query {
        case .notification(let id): event.id == id || event.uniqueID == id
        case .device(let device): event.slot.device == device
        case .app(let app): event.slot.app == app
        }
    }
}
