import GRDB
import HeraldModel
import Logging

/// What is done with the store's file before anything is served from it.
struct StoreStart {
    let file: DatabaseFile
    let logger: Logger

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
    ///
    /// A notification whose head is damaged belongs to no slot. What is left of it stays where it is, for whoever can make
    /// something of it, and with it its bundle; every start says so.
    private func readIndex(_ database: Database) throws -> SlotIndex {
        var index = SlotIndex()
        index.reserve(try likelyCount(database))
        var superseded: [Place] = []
        var damaged: [Place] = []
        try BundleReader.scan(database) { entry in
            guard let other = index.set(entry) else { return }
            if other.sequence > entry.sequence { index.set(other) }
            superseded.append(other.sequence > entry.sequence ? entry.place : other.place)
        } damaged: { place in
            damaged.append(place)
        }
        if !damaged.isEmpty {
            logger.error(
                "stored notifications cannot be delivered; check the disk, restore a backup",
                metadata: ["notifications": "\(damaged.count)", "reason": "are damaged", "rows": "\(rows(damaged))"]
            )
        }
        if !superseded.isEmpty {
            logger.error(
                "stored notifications had a newer one beside them and are dropped; check the disk",
                metadata: ["notifications": "\(superseded.count)"]
            )
            var bundles = try BundleTable(database)
            try database.inTransaction(.immediate) {
                try bundles.bury(superseded.sorted()) { _ in false }
                return .commit
            }
        }
        return index
    }

    /// The bundles of these places, the first of them.
    private func rows(_ places: [Place]) -> String {
        let numbers = Set(places.map(\.bundle)).sorted()
        return numbers.prefix(10).map { "\($0)" }.joined(separator: ", ") + (numbers.count > 10 ? ", …" : "")
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
