import GRDB
import HeraldModel
import Logging

/// What is done with the store's file before anything is served from it.
struct StoreStart {
    /// Tables that are small and matter most: checked from end to end after every unclean stop.
    private static let vitalTables = [
        "device", "app", "registration", "feedback", "setting", "channel", "broadcast", "dead",
    ]

    let file: DatabaseFile
    let configuration: SQLiteStoreConfiguration
    let logger: Logger

    /// Checks the file if it was not closed, notes that it is open, and reads the index.
    /// - Throws: ``StoreError``.
    func run(_ connection: DatabaseQueue) throws -> SlotIndex {
        do {
            return try connection.writeWithoutTransaction { database in
                if try !StoreSettings.isClean(database) { try check(database) }
                try StoreSettings.open(database)
                return try readIndex(database)
            }
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    /// A check takes a second for some hundred megabytes, so it is bounded: a small file is checked from end to end, of
    /// a large one the tables that matter most.
    ///
    /// The mailbox is read anyway, and the journal tells no lies: a page of it that makes no sense is left out.
    private func check(_ database: Database) throws {
        logger.notice("the store was not closed cleanly; checking it")
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        if pages <= configuration.fullCheckPages {
            try quickCheck(database, sql: "PRAGMA quick_check(1)")
        } else {
            for table in StoreStart.vitalTables { try quickCheck(database, sql: "PRAGMA quick_check('\(table)')") }
        }
    }

    private func quickCheck(_ database: Database, sql: String) throws {
        guard let answer = try String.fetchOne(database, sql: sql), answer != "ok" else { return }
        throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: answer)
    }

    /// Should a slot have two, the newer one counts, and the older dies.
    private func readIndex(_ database: Database) throws -> SlotIndex {
        var index = SlotIndex()
        index.reserve(try likelyCount(database))
        var superseded: [Place] = []
        try BundleReader.scan(database) { entry in
            guard let other = index.set(entry) else { return }
            if other.sequence > entry.sequence { index.set(other) }
            superseded.append(other.sequence > entry.sequence ? entry.place : other.place)
        }
        if !superseded.isEmpty {
            var bundles = try BundleTable(database)
            try database.inTransaction(.immediate) {
                try bundles.bury(superseded.sorted()) { _ in false }
                return .commit
            }
        }
        return index
    }

    /// How many there can be at most, without counting them: no more than fit into the bundles, or into the file.
    ///
    /// Room that is not used costs address space only.
    private func likelyCount(_ database: Database) throws -> Int {
        // Each by itself: SQLite looks at one end of the table then, instead of at all of it.
        let newest = try Int.fetchOne(database, sql: "SELECT max(number) FROM bundle") ?? 0
        let oldest = try Int.fetchOne(database, sql: "SELECT min(number) FROM bundle") ?? 0
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        let countPerPage = 10
        // A damaged file may claim anything.
        let bundles = min(max(0, newest.subtractingReportingOverflow(oldest).partialValue), 4_000_000) + 1
        return min(bundles * Bundle.memberLimit, pages * countPerPage, 4_000_000)
    }
}
