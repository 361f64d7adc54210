import Foundation
import GRDBSQLite
import HeraldModel

/// Appends the workload with nothing but the sqlite3 library: same table, same settings, same size of transactions.
struct RawStore {
    struct Failure: Error {
        let message: String
    }

    let options: StoreBench.Options
    let batch: Int

    init(_ options: StoreBench.Options, batch: Int) {
        self.options = options
        self.batch = batch
    }

    func run() throws -> (rate: Double, cpu: Double) {
        let path = options.folder + "/raw.sqlite"
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        let notifications = Workload(options).notifications
        var connection: OpaquePointer?
        guard sqlite3_open(path, &connection) == SQLITE_OK, let connection else { throw Failure(message: "open") }
        defer { sqlite3_close(connection) }
        try execute(
            connection,
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
            PRAGMA cache_size = -65536; PRAGMA secure_delete = ON;
            CREATE TABLE mailbox (sequence INTEGER PRIMARY KEY, device INTEGER NOT NULL, app INTEGER NOT NULL,
                stored_until INTEGER, id BLOB NOT NULL, unique_id BLOB NOT NULL, received INTEGER NOT NULL,
                priority INTEGER NOT NULL, push_type INTEGER NOT NULL, collapse_id TEXT, checksum INTEGER NOT NULL,
                payload BLOB NOT NULL);
            """
        )
        let cpu = StoreBench.processorTime()
        let start = ContinuousClock.now
        try append(notifications, connection)
        let elapsed = start.duration(to: .now)
        let used = StoreBench.processorTime() - cpu
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        return (Double(notifications.count) / seconds, used / Double(notifications.count) * 1e6)
    }

    private func append(_ notifications: [HeraldModel.Notification], _ connection: OpaquePointer) throws {
        var insertion: OpaquePointer?
        var deletion: OpaquePointer?
        sqlite3_prepare_v2(connection, "INSERT INTO mailbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", -1, &insertion, nil)
        sqlite3_prepare_v2(connection, "DELETE FROM mailbox WHERE sequence = ?", -1, &deletion, nil)
        defer {
            sqlite3_finalize(insertion)
            sqlite3_finalize(deletion)
        }
        let replaces = options.slots < options.count
        var newest: [UInt64: Int64] = [:]
        var sinceCheckpoint = 0
        var next = 0
        while next < notifications.count {
            let end = min(next + batch, notifications.count)
            try execute(connection, "BEGIN IMMEDIATE")
            for place in next..<end {
                let notification = notifications[place]
                if replaces {
                    if let older = newest[notification.slot.device.value] {
                        sqlite3_bind_int64(deletion, 1, older)
                        try step(deletion, connection)
                    }
                    newest[notification.slot.device.value] = Int64(place)
                }
                try insert(notification, sequence: Int64(place), insertion, connection)
            }
            if options.delay > 0 { usleep(UInt32(options.delay)) }
            try execute(connection, "COMMIT")
            sinceCheckpoint += (end - next) * (options.payload + 100) / 4096 + 4
            if sinceCheckpoint > 1000 {
                sqlite3_wal_checkpoint_v2(connection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
                sinceCheckpoint = 0
            }
            next = end
        }
    }

    private func insert(
        _ notification: HeraldModel.Notification,
        sequence: Int64,
        _ statement: OpaquePointer?,
        _ connection: OpaquePointer
    ) throws {
        sqlite3_bind_int64(statement, 1, sequence)
        sqlite3_bind_int64(statement, 2, Int64(bitPattern: notification.slot.device.value))
        sqlite3_bind_int64(statement, 3, Int64(notification.slot.app.value))
        sqlite3_bind_int64(statement, 4, notification.storedUntil?.milliseconds ?? 0)
        sqlite3_bind_int64(statement, 7, notification.received.milliseconds)
        sqlite3_bind_int64(statement, 8, 10)
        sqlite3_bind_int64(statement, 9, 1)
        sqlite3_bind_null(statement, 10)
        sqlite3_bind_int64(statement, 11, sequence)
        let words = (notification.id.high, notification.id.low, notification.uniqueID.high, notification.uniqueID.low)
        try withUnsafeBytes(of: words) { identifiers in
            sqlite3_bind_blob(statement, 5, identifiers.baseAddress, 16, nil)
            sqlite3_bind_blob(statement, 6, identifiers.baseAddress.map { $0 + 16 }, 16, nil)
            try notification.payload.withUnsafeBytes { payload in
                sqlite3_bind_blob(statement, 12, payload.baseAddress, CInt(payload.count), nil)
                try step(statement, connection)
            }
        }
    }

    private func step(_ statement: OpaquePointer?, _ connection: OpaquePointer) throws {
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard code == SQLITE_DONE else { throw Failure(message: String(cString: sqlite3_errmsg(connection))) }
    }

    private func execute(_ connection: OpaquePointer, _ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
            throw Failure(message: String(cString: sqlite3_errmsg(connection)))
        }
    }
}
