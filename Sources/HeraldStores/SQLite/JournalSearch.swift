import GRDB
import HeraldMailbox
import HeraldModel

/// A search through the journal, newest page first, a bounded number of pages at a time: a long read would keep the
/// write-ahead log from starting over.
struct JournalSearch: Sendable {
    /// How many rows one step reads.
    static let pagesPerStep = 256

    let query: JournalQuery
    let limit: Int
    /// What was found so far, newest first.
    private(set) var found: [JournalEvent] = []
    /// Rows before this position are still to be read; nil at the end.
    private(set) var position: Int64? = .max
    /// How many rows make no sense.
    private(set) var damagedPages = 0

    init(query: JournalQuery, limit: Int) {
        self.query = query
        self.limit = max(0, limit)
    }

    var isFinished: Bool { position == nil || found.count >= limit }

    /// Reads the next pages.
    /// - Throws: `DatabaseError`.
    mutating func step(_ database: Database) throws {
        guard let before = position, !isFinished else { return }
        let isByIdentifier = if case .notification = query { true } else { false }
        let pages = try HotStatement(
            database,
            sql: """
                SELECT position, \(isByIdentifier ? "fingerprints" : "events") FROM journal
                WHERE position < ? ORDER BY position DESC LIMIT \(JournalSearch.pagesPerStep)
                """,
            isCached: true
        )
        let records = try HotStatement(
            database,
            sql: "SELECT events FROM journal WHERE position = ?",
            isCached: true
        )
        pages.bind(before, at: 1)
        var count = 0
        try pages.forEachRow { row in
            count += 1
            position = row.integer(0)
            if case .notification(let id) = query {
                let places = JournalSearch.places(of: JournalRecord.fingerprint(id), in: row.bytes(1))
                if !places.isEmpty {
                    records.bind(row.integer(0), at: 1)
                    try records.forEachRow { row in
                        collect(places, in: row.bytes(0))
                        return false
                    }
                }
            } else {
                let bytes = row.bytes(1)
                collect(Array(0..<bytes.count / JournalRecord.byteCount), in: bytes)
            }
            return found.count < limit
        }
        if count < JournalSearch.pagesPerStep, found.count < limit { position = nil }
    }

    /// Which lines have one of their two identifiers' fingerprints.
    private static func places(of fingerprint: UInt64, in bytes: UnsafeRawBufferPointer) -> [Int] {
        let wanted = fingerprint.littleEndian
        var places: [Int] = []
        for place in 0..<bytes.count / 16 {
            let first = bytes.loadUnaligned(fromByteOffset: place * 16, as: UInt64.self)
            let second = bytes.loadUnaligned(fromByteOffset: place * 16 + 8, as: UInt64.self)
            if first == wanted || second == wanted { places.append(place) }
        }
        return places
    }

    private mutating func collect(_ places: [Int], in bytes: UnsafeRawBufferPointer) {
        for place in places.reversed() where found.count < limit {
            guard let event = JournalRecord.read(bytes, at: place) else {
                damagedPages += 1
                return
            }
            if matches(event) { found.append(event) }
        }
    }

    private func matches(_ event: JournalEvent) -> Bool {
        switch query {
        case .notification(let id): event.id == id || event.uniqueID == id
        case .device(let device): event.slot.device == device
        case .app(let app): event.slot.app == app
        }
    }
}
