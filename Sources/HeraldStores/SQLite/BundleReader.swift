import GRDB
import HeraldModel

/// The tables `bundle` and `dead`, read by any connection.
struct BundleReader {
    /// What stands in a place.
    enum Found {
        case notification(Notification)
        case nothing
        /// Something else than was written.
        case damaged
    }

    static let selection = "SELECT heads, bodies FROM bundle WHERE number = ?"

    /// What the start and the writer say of rows that cannot have been written.
    static let nonsense = DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the mailbox makes no sense")

    private let statement: HotStatement

    init(_ database: Database) throws {
        statement = try HotStatement(database, sql: BundleReader.selection, isCached: true)
    }

    /// Reads what the index says is there.
    ///
    /// Whether it is dead is not looked at: the index knows better than any snapshot.
    /// - Throws: `DatabaseError`.
    func find(_ entry: SlotIndex.Entry) throws -> Found {
        let place = entry.place
        statement.bind(place.bundle, at: 1)
        var found = Found.nothing
        try statement.forEachRow { row in
            guard let bundle = Bundle(heads: row.bytes(0), bodies: row.bytes(1)), bundle.count == place.count,
                bundle.head(place.position).sequence == entry.sequence,
                let notification = bundle.notification(place.position), notification.slot == entry.slot
            else {
                found = .damaged
                return false
            }
            found = .notification(notification)
            return false
        }
        return found
    }

    /// Reads of everything that lives what the index needs, in the order of the bundles, and tells where a head is not what
    /// was written.
    /// - Throws: `DatabaseError`, also for a row that cannot have been written; for rows that are not in order, of which a
    ///   deletion would find another; and for marks of no bundle: they are of one whose dead would come back.
    static func scan(
        _ database: Database,
        _ body: (SlotIndex.Entry) -> Void,
        damaged: (Place) -> Void
    ) throws {
        let scan = try HotStatement(
            database,
            sql: """
                SELECT bundle.number, heads, members FROM bundle LEFT JOIN dead ON dead.number = bundle.number
                ORDER BY bundle.number
                """
        )
        var last: Int64 = 0
        var markCount = 0
        try scan.forEachRow { row in
            let number = row.integer(0)
            let heads = row.bytes(1)
            guard number > last, Place.numbers.contains(number), let count = Bundle.count(headBytes: heads.count),
                let dead = row.optionalInteger(2).map({ Members(stored: $0, for: number) }) ?? Members.empty,
                dead.areWithin(count)
            else { throw nonsense }
            last = number
            if row.optionalInteger(2) != nil { markCount += 1 }
            for position in 0..<count where !dead.contains(position) {
                let head = Head(heads, at: position)
                let place = Place(bundle: number, position: position, count: count)
                guard head.isSound else {
                    damaged(place)
                    continue
                }
                body(
                    SlotIndex.Entry(
                        slot: head.slot,
                        sequence: head.sequence,
                        place: place,
                        expires: head.storedUntil,
                        id: head.id,
                        uniqueID: head.uniqueID
                    )
                )
            }
            return true
        }
        guard try Int.fetchOne(database, sql: "SELECT count(*) FROM dead") == markCount else { throw nonsense }
    }
}
