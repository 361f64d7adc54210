import GRDB
import Logging

/// Builds the in-memory index from the segments' headers, at the start.
struct IndexBuilder {
    let file: DatabaseFile
    let logger: Logger

    /// Marks the store as open, and builds the index.
    /// - Throws: ``StoreError``.
    func run(_ connection: DatabaseQueue) throws -> SlotIndex {
        do {
            return try connection.writeWithoutTransaction { database in
                try StoreSettings.open(database)
                return try buildIndex(database)
            }
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    /// Scans all segments.
    ///
    /// If a slot has two notifications, the newer one stays and the older one is deleted.
    ///
    /// A notification with a damaged header belongs to no slot. Its bytes stay for recovery, and with them its segment;
    /// every start logs it.
    private func buildIndex(_ database: Database) throws -> SlotIndex {
        var index = SlotIndex()
        index.reserve(try estimatedCount(database))
        var superseded: [SegmentPosition] = []
        var damaged: [SegmentPosition] = []
        try SegmentReader.scan(database) { entry in
            guard let other = index.set(entry) else { return }
            if other.sequence > entry.sequence { index.set(other) }
            superseded.append(other.sequence > entry.sequence ? entry.position : other.position)
        } damaged: { position in
            damaged.append(position)
        }
        if !damaged.isEmpty {
            logger.error(
                "stored notifications are damaged and cannot be delivered; check the disk, restore a backup",
                metadata: ["notifications": "\(damaged.count)", "segments": "\(segments(of: damaged))"]
            )
        }
        if !superseded.isEmpty {
            logger.error(
                "deleted stored notifications that a newer one should have replaced; check the disk",
                metadata: ["notifications": "\(superseded.count)"]
            )
            var table = try SegmentTable(database)
            try database.inTransaction(.immediate) {
                try table.delete(superseded.sorted()) { _ in false }
                return .commit
            }
        }
        return index
    }

    /// The numbers of the first ten segments of these positions.
    private func segments(of positions: [SegmentPosition]) -> String {
        let numbers = Set(positions.map(\.segment)).sorted()
        return numbers.prefix(10).map { "\($0)" }.joined(separator: ", ") + (numbers.count > 10 ? ", …" : "")
    }

    /// An upper bound of the number of notifications, without counting them: what fits into the segments and the file.
    ///
    /// Unused capacity costs address space only.
    private func estimatedCount(_ database: Database) throws -> Int {
        // In separate queries: SQLite then looks at one end of the table instead of scanning it.
        let newest = try Int.fetchOne(database, sql: "SELECT max(number) FROM segment") ?? 0
        let oldest = try Int.fetchOne(database, sql: "SELECT min(number) FROM segment") ?? 0
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        let countPerPage = 10
        // A damaged file may hold any number.
        let segments = min(max(0, newest.subtractingReportingOverflow(oldest).partialValue), 4_000_000) + 1
        return min(segments * Segment.countLimit, pages * countPerPage, 4_000_000)
    }
}
