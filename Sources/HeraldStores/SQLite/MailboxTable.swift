import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `mailbox`, written by the writer's connection.
struct MailboxTable {
    private let insertion: HotStatement
    private let deletion: HotStatement

    init(_ database: Database) throws {
        insertion = try HotStatement(
            database,
            sql: """
                INSERT INTO mailbox (sequence, device, app, stored_until, id, unique_id, received, priority, push_type,
                    collapse_id, checksum, payload)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        )
        deletion = try HotStatement(database, sql: "DELETE FROM mailbox WHERE sequence BETWEEN ? AND ?")
    }

    /// - Throws: `DatabaseError`.
    func insert(_ notification: Notification, sequence: UInt64) throws {
        let row = insertion
        row.bind(Int64(bitPattern: sequence), at: 1)
        row.bind(Int64(bitPattern: notification.slot.device.value), at: 2)
        row.bind(Int64(notification.slot.app.value), at: 3)
        row.bind(notification.storedUntil?.milliseconds, at: 4)
        row.bind(notification.received.milliseconds, at: 7)
        row.bind(Int64(notification.priority.rawValue), at: 8)
        row.bind(Int64(notification.pushType.storedCode), at: 9)
        row.bind(copyOf: notification.collapseID, at: 10)
        row.bind(Int64(bitPattern: MailboxTable.checksum(notification, sequence: sequence)), at: 11)
        let id = notification.id
        let uniqueID = notification.uniqueID
        let words = (id.high.bigEndian, id.low.bigEndian, uniqueID.high.bigEndian, uniqueID.low.bigEndian)
        try withUnsafeBytes(of: words) { identifiers in
            row.bind(borrowed: UnsafeRawBufferPointer(rebasing: identifiers[0..<16]), at: 5)
            row.bind(borrowed: UnsafeRawBufferPointer(rebasing: identifiers[16..<32]), at: 6)
            try notification.payload.withUnsafeBytes { payload in
                row.bind(borrowed: payload, at: 12)
                try row.run()
            }
        }
    }

    /// Deletes the rows of these sequences that are there.
    /// - Throws: `DatabaseError`.
    func delete(_ sequences: ClosedRange<UInt64>) throws {
        deletion.bind(Int64(bitPattern: sequences.lowerBound), at: 1)
        deletion.bind(Int64(bitPattern: sequences.upperBound), at: 2)
        try deletion.run()
    }

    static func checksum(_ notification: Notification, sequence: UInt64) -> UInt64 {
        var sum = Checksum()
        sum.add(sequence)
        sum.add(notification.slot.device.value)
        sum.add(UInt64(notification.slot.app.value))
        sum.add(UInt64(bitPattern: notification.storedUntil?.milliseconds ?? .max))
        sum.add(notification.id.high)
        sum.add(notification.id.low)
        sum.add(notification.uniqueID.high)
        sum.add(notification.uniqueID.low)
        sum.add(UInt64(bitPattern: notification.received.milliseconds))
        sum.add(UInt64(notification.priority.rawValue) << 8 | UInt64(notification.pushType.storedCode))
        if var collapseID = notification.collapseID { collapseID.withUTF8 { sum.add(UnsafeRawBufferPointer($0)) } }
        notification.payload.withUnsafeBytes { sum.add($0) }
        return sum.value
    }
}

/// The rows of the table `mailbox`, read by any connection.
struct MailboxReader {
    /// What stands under a sequence.
    enum Found {
        case notification(Notification)
        case nothing
        /// Something else than was written.
        case damaged
    }

    private let selection: HotStatement

    init(_ database: Database) throws {
        selection = try HotStatement(
            database,
            sql: """
                SELECT device, app, stored_until, id, unique_id, received, priority, push_type, collapse_id, checksum,
                    payload
                FROM mailbox WHERE sequence = ?
                """,
            isCached: true
        )
    }

    /// - Throws: `DatabaseError`.
    func find(_ sequence: UInt64) throws -> Found {
        selection.bind(Int64(bitPattern: sequence), at: 1)
        var found = Found.nothing
        try selection.forEachRow { row in
            guard let notification = MailboxReader.notification(row),
                MailboxTable.checksum(notification, sequence: sequence) == UInt64(bitPattern: row.integer(9))
            else {
                found = .damaged
                return false
            }
            found = .notification(notification)
            return false
        }
        return found
    }

    private static func notification(_ row: HotRow) -> Notification? {
        guard let app = UInt32(exactly: row.integer(1)), let id = NotificationID(stored: row.bytes(3)),
            let uniqueID = NotificationID(stored: row.bytes(4)),
            let priority = UInt8(exactly: row.integer(6)).flatMap(Priority.init(rawValue:)),
            let pushType = UInt8(exactly: row.integer(7)).flatMap(PushType.init(storedCode:))
        else { return nil }
        return Notification(
            id: id,
            uniqueID: uniqueID,
            slot: Slot(device: DeviceNumber(UInt64(bitPattern: row.integer(0))), app: AppNumber(app)),
            received: WallTime(milliseconds: row.integer(5)),
            storedUntil: row.optionalInteger(2).map(WallTime.init(milliseconds:)),
            priority: priority,
            pushType: pushType,
            collapseID: row.text(8),
            payload: Array(row.bytes(10))
        )
    }

    /// Reads of every row what the index needs, oldest first.
    /// - Throws: `DatabaseError`, also for a row that cannot have been written.
    static func scan(_ database: Database, _ body: (SlotIndex.Entry) -> Void) throws {
        let scan = try HotStatement(
            database,
            sql: "SELECT sequence, device, app, stored_until, id, unique_id FROM mailbox ORDER BY sequence"
        )
        try scan.forEachRow { row in
            guard let app = UInt32(exactly: row.integer(2)), let id = NotificationID(stored: row.bytes(4)),
                let uniqueID = NotificationID(stored: row.bytes(5))
            else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the mailbox makes no sense")
            }
            body(
                SlotIndex.Entry(
                    slot: Slot(device: DeviceNumber(UInt64(bitPattern: row.integer(1))), app: AppNumber(app)),
                    sequence: UInt64(bitPattern: row.integer(0)),
                    expires: row.optionalInteger(3) ?? .max,
                    id: id,
                    uniqueID: uniqueID
                )
            )
            return true
        }
    }
}

extension NotificationID {
    /// Reads the 16 bytes of an identifier in the database.
    init?(stored bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 16 else { return nil }
        self.init(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }
}
