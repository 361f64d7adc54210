import GRDB
import HeraldModel

/// What is done with the store's file before anything is served from it.
struct StoreStart {
    let file: DatabaseFile

    /// Notes that the store is open, and reads the index.
    /// - Throws: ``StoreError``.
    func run(_ connection: DatabaseQueue) throws -> SlotIndex {
        do {
            return try connection.writeWithoutTransaction { database in
                try StoreSettings.open(database)
                return try readIndex(database)
            }
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
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
