import GRDB
import HeraldMailbox
import HeraldModel

/// Searches the journal, newest row first, a bounded number of rows at a time, and skips chunks by their digests.
///
/// A long read would keep the write-ahead log from starting over.
struct JournalSearch: Sendable {
    /// The most rows, and about the most bytes of rows, that one step reads.
    static let rowsPerStep = 256
    static let bytesPerStep = 1 << 20

    let filter: JournalFilter
    let limit: Int
    /// Matching lines so far, newest first.
    private(set) var found: [JournalPage.Line] = []
    /// The place of the next step; nil at the end.
    private(set) var next: JournalCursor?
    /// The earliest time in the last row.
    private(set) var searchedBackTo: WallTime?
    /// Rows that could not be read.
    private(set) var damagedRows = 0
    /// Chunks whose rows had to be read.
    private(set) var chunksRead = 0
    private let probe: DigestProbe
    /// The first position of the chunk that is being read; nil before the next chunk is chosen.
    private var floor: Int64?

    init(_ filter: JournalFilter, from cursor: JournalCursor = .end, limit: Int) {
        self.filter = filter
        self.limit = max(0, limit)
        next = cursor
        probe = DigestProbe(filter)
    }

    var isFinished: Bool { next == nil || found.count >= limit }

    /// Reads the next rows.
    /// - Throws: `DatabaseError`.
    mutating func step(_ database: Database) throws {
        var rows = JournalSearch.rowsPerStep
        var bytes = JournalSearch.bytesPerStep
        while let cursor = next, !isFinished, rows > 0, bytes > 0 {
            if let floor {
                try read(database, from: cursor, down: floor, &rows, &bytes)
            } else {
                rows -= 1
                try chooseChunk(database, before: cursor.before)
            }
        }
    }

    /// Decides whether the chunk of the newest row before a position is read.
    private mutating func chooseChunk(_ database: Database, before: Int64) throws {
        let statement = try HotStatement(
            database,
            sql: "SELECT position FROM journal WHERE position < ? ORDER BY position DESC LIMIT 1",
            isCached: true
        )
        statement.bind(before, at: 1)
        var position: Int64?
        try statement.forEachRow { row in
            position = row.integer(0)
            return false
        }
        guard let position else {
            next = nil
            return
        }
        let chunk = JournalDigest.chunk(of: position)
        if try probe.mayHaveLines(chunk, database) {
            floor = JournalDigest.start(of: chunk)
            chunksRead += 1
        } else {
            next = JournalCursor(before: JournalDigest.start(of: chunk))
        }
    }

    private mutating func read(
        _ database: Database,
        from cursor: JournalCursor,
        down floor: Int64,
        _ rows: inout Int,
        _ bytes: inout Int
    ) throws {
        let statement = try HotStatement(
            database,
            sql: """
                SELECT position, first_time, events FROM journal
                WHERE position < ? AND position >= ? ORDER BY position DESC LIMIT ?
                """,
            isCached: true
        )
        statement.bind(cursor.before, at: 1)
        statement.bind(floor, at: 2)
        statement.bind(Int64(rows), at: 3)
        let allowed = rows
        var (count, size) = (0, 0)
        try statement.forEachRow { row in
            let position = row.integer(0)
            let remaining = position == cursor.before - 1 ? cursor.events : nil
            let content = row.bytes(2)
            count += 1
            size += content.count
            searchedBackTo = WallTime(milliseconds: row.integer(1))
            next = JournalCursor(before: position)
            collect(content, at: position, remaining)
            return found.count < limit && size < bytes
        }
        rows -= count
        bytes -= size
        if count < allowed, found.count < limit, bytes > 0 {
            next = JournalCursor(before: floor)
            self.floor = nil
        }
    }

    /// Adds a row's matching events, of its first `remaining` ones.
    private mutating func collect(_ content: UnsafeRawBufferPointer, at position: Int64, _ remaining: Int?) {
        guard probe.mayHaveLines(content) else { return }
        var matching: [JournalPage.Line] = []
        var index = 0
        let isWhole = JournalRow.read(content) { event in
            if index < remaining ?? .max, filter.includes(event) {
                let next = JournalCursor(before: position + 1, events: index)
                matching.append(JournalPage.Line(event: event, next: next))
            }
            index += 1
        }
        guard isWhole else {
            damagedRows += 1
            return
        }
        found += matching.suffix(limit - found.count).reversed()
        if found.count >= limit, let last = found.last { next = last.next }
    }
}

/// Asks the digests of chunks whether a search must read them.
struct DigestProbe: Sendable {
    /// The most identifiers, or devices, that are looked up one by one.
    static let keyLimit = 16

    private let filter: JournalFilter
    /// Hashes of the wanted identifiers and devices; nil if any may be included, or there are too many.
    private let identifiers: [UInt64]?
    private let devices: [UInt64]?

    init(_ filter: JournalFilter) {
        self.filter = filter
        func hashes<Key>(_ keys: Set<Key>?, _ hash: (Key) -> UInt64) -> [UInt64]? {
            guard let keys, keys.count <= DigestProbe.keyLimit else { return nil }
            return keys.map(hash)
        }
        identifiers = hashes(filter.ids.wanted) { JournalKeys.hash($0) }
        let slots = hashes(filter.slots.wanted) { JournalKeys.hash($0.device) }
        devices = hashes(filter.devices.wanted) { JournalKeys.hash($0) } ?? slots
    }

    /// Whether a chunk may have matching lines; also if its digest is missing or damaged.
    /// - Throws: `DatabaseError`.
    func mayHaveLines(_ chunk: Int64, _ database: Database) throws -> Bool {
        let summary = try content(chunk, slice: 0, database) { DigestSummary.read($0) }
        if let summary = summary.flatMap(\.self), !filter.mayInclude(summary) { return false }
        if let identifiers {
            guard try mayHave(any: identifiers, chunk, database, JournalDigest.place(ofIdentifier:)) else {
                return false
            }
        }
        if let devices {
            guard try mayHave(any: devices, chunk, database, JournalDigest.place(ofDevice:)) else { return false }
        }
        return true
    }

    /// Whether a row may have matching lines, before it is decoded.
    func mayHaveLines(_ row: UnsafeRawBufferPointer) -> Bool {
        func mayHave<Key>(_ keys: Set<Key>?, _ contains: (Key) -> Bool) -> Bool {
            guard let keys, keys.count <= DigestProbe.keyLimit else { return true }
            return keys.contains(where: contains)
        }
        return mayHave(filter.ids.wanted) { JournalRow.mayContain($0, row) }
            && mayHave(filter.devices.wanted) { JournalRow.mayContain($0, row) }
            && mayHave(filter.slots.wanted) { JournalRow.mayContain($0.device, row) }
    }

    private func mayHave(
        any hashes: [UInt64],
        _ chunk: Int64,
        _ database: Database,
        _ place: (UInt64) -> (slice: Int, place: BlockFilter.Place)
    ) throws -> Bool {
        for hash in hashes {
            let (slice, place) = place(hash)
            let isSet = try content(chunk, slice: slice, database) { bytes in
                bytes.count == BlockFilter.bytesPerSlice ? place.isSet(inSlice: bytes) : true
            }
            if isSet != false { return true }
        }
        return false
    }

    /// - Returns: nil if the row is missing or damaged.
    private func content<Value>(
        _ chunk: Int64,
        slice: Int,
        _ database: Database,
        _ read: (UnsafeRawBufferPointer) -> Value
    ) throws -> Value? {
        let number = JournalDigest.rowNumber(chunk, slice: slice)
        let statement = try HotStatement(
            database,
            sql: "SELECT bits FROM journal_digest WHERE number = ?",
            isCached: true
        )
        statement.bind(number, at: 1)
        var value: Value?
        try statement.forEachRow { row in
            value = JournalDigest.content(row.bytes(0), number: number).map(read)
            return false
        }
        return value
    }
}

extension JournalFilter {
    /// The lines that a query is about.
    init(_ query: JournalQuery) {
        self.init()
        switch query {
        case .notification(let id): ids.add([id])
        case .device(let device): devices.add([device])
        case .app(let app): topics.add([.app(app)])
        case .topicWithoutApp(let topic): topics.add([.name(topic.name)])
        }
    }
}
