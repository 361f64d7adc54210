import GRDB
import HeraldModel

/// Reads the tables `segment` and `tombstone` on any connection.
struct SegmentReader {
    /// The result of a look-up.
    enum Found {
        case notification(Notification)
        /// The segment does not exist.
        case missing
        /// The bytes are not those that were written.
        case damaged
    }

    static let selection = "SELECT headers, bodies FROM segment WHERE number = ?"

    /// The error for a row that Herald cannot have written.
    static let invalidRow = DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the mailbox is invalid")

    private let statement: HotStatement

    init(_ database: Database) throws {
        statement = try HotStatement(database, sql: SegmentReader.selection, isCached: true)
    }

    /// Reads the notification of an index entry.
    ///
    /// The look-up ignores tombstones: the index is newer than any snapshot.
    /// - Throws: `DatabaseError`.
    func find(_ entry: SlotIndex.Entry) throws -> Found {
        let position = entry.position
        statement.bind(position.segment, at: 1)
        var found = Found.missing
        try statement.forEachRow { row in
            guard let segment = Segment(headers: row.bytes(0), bodies: row.bytes(1)), segment.count == position.count,
                segment.header(position.index).sequence == entry.sequence,
                let notification = segment.notification(position.index), notification.slot == entry.slot
            else {
                found = .damaged
                return false
            }
            found = .notification(notification)
            return false
        }
        return found
    }

    /// Reads the index entries of all live notifications, in the order of the segments, and reports damaged headers.
    /// - Throws: `DatabaseError`, also in three cases of damage: an invalid row, rows out of order (a deletion would hit
    ///   the wrong one), and a tombstone without its segment (its deletions would be undone).
    static func scan(
        _ database: Database,
        _ body: (SlotIndex.Entry) -> Void,
        damaged: (SegmentPosition) -> Void
    ) throws {
        let scan = try HotStatement(
            database,
            sql: """
                SELECT number, headers, bits FROM segment LEFT JOIN tombstone ON tombstone.segment = number
                ORDER BY number
                """
        )
        var last: Int64 = 0
        var tombstoneRows = 0
        try scan.forEachRow { row in
            let number = row.integer(0)
            let headers = row.bytes(1)
            guard number > last, SegmentPosition.numbers.contains(number),
                let count = Segment.count(headerBytes: headers.count),
                let deleted = row.optionalInteger(2).map({ Tombstones(stored: $0, for: number) }) ?? Tombstones.empty,
                deleted.areWithin(count)
            else { throw invalidRow }
            last = number
            if row.optionalInteger(2) != nil { tombstoneRows += 1 }
            for index in 0..<count where !deleted.contains(index) {
                let header = NotificationHeader(headers, at: index)
                let position = SegmentPosition(segment: number, index: index, count: count)
                guard header.isValid else {
                    damaged(position)
                    continue
                }
                body(
                    SlotIndex.Entry(
                        slot: header.slot,
                        traits: header.traits,
                        sequence: header.sequence,
                        position: position,
                        expires: header.storedUntil,
                        id: header.id,
                        uniqueID: header.uniqueID
                    )
                )
            }
            return true
        }
        guard try Int.fetchOne(database, sql: "SELECT count(*) FROM tombstone") == tombstoneRows else {
            throw invalidRow
        }
    }
}
