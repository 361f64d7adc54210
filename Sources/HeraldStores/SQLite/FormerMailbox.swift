import GRDB
import HeraldModel

/// The table in which each notification had a row of its own, up to the second step of the ``Schema``.
enum FormerMailbox {
    /// Carries its rows over into bundles, as they are.
    ///
    /// A notification that was damaged is so afterwards: its head is written as one that nobody believes, since what is
    /// damaged may be its slot or its sequence, and it would kill a sound one there.
    ///
    /// In one transaction, the caller's: a start that is interrupted begins again. Rows that were carried over are deleted
    /// as it goes on, so that bundles take their pages, and the file grows by little. Where the rows are not in order, what
    /// is deleted is not what was carried over: then nothing is.
    /// - Throws: `DatabaseError`, also for rows that cannot have been written.
    static func carryOver(_ database: Database) throws {
        var table = try BundleTable(database)
        let rows = try HotStatement(
            database,
            sql: """
                SELECT sequence, device, app, stored_until, id, unique_id, received, priority, push_type, checksum,
                    collapse_id, payload
                FROM mailbox WHERE sequence > ? ORDER BY sequence LIMIT 1000
                """
        )
        let deletion = try HotStatement(database, sql: "DELETE FROM mailbox WHERE sequence <= ?")
        // Sequences begin with 1; of smaller ones the first deletion finds more than was carried over.
        var last: Int64 = 0
        var count: Int
        repeat {
            count = 0
            rows.bind(last, at: 1)
            try rows.forEachRow { row in
                guard row.integer(0) > last else { throw BundleReader.nonsense }
                last = row.integer(0)
                try carryOver(row, into: &table)
                count += 1
                return true
            }
            deletion.bind(last, at: 1)
            try deletion.run()
            guard database.changesCount == count else { throw BundleReader.nonsense }
        } while count > 0
        try table.flush()
    }

    private static func carryOver(_ row: HotRow, into table: inout BundleTable) throws {
        guard let app = UInt32(exactly: row.integer(2)), let id = NotificationID(stored: row.bytes(4)),
            let uniqueID = NotificationID(stored: row.bytes(5)), row.bytes(10).count <= UInt16.max
        else { throw BundleReader.nonsense }
        let collapseLength = row.bytes(10).count
        let body = Array(row.bytes(10)) + Array(row.bytes(11))
        var head = Head(
            sequence: UInt64(bitPattern: row.integer(0)),
            slot: Slot(device: DeviceNumber(UInt64(bitPattern: row.integer(1))), app: AppNumber(app)),
            collapseLength: collapseLength,
            priority: UInt8(truncatingIfNeeded: row.integer(7)),
            pushType: UInt8(truncatingIfNeeded: row.integer(8)),
            id: id,
            uniqueID: uniqueID,
            received: row.integer(6),
            storedUntil: row.optionalInteger(3),
            payloadLength: body.count - collapseLength,
            checksum: UInt64(bitPattern: row.integer(9))
        )
        try body.withUnsafeBytes { body in
            if head.notification(body) == nil { head.markDamaged() }
            try table.append(head, body: body)
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
