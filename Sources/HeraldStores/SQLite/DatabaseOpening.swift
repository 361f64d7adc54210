import GRDB
import GRDBSQLite
import HeraldModel
import Logging

/// Opens connections to the store's file, with the settings on which its promises rest, each read back.
///
/// - Write-ahead log with `synchronous` FULL: a commit is on disk when it returns. (NORMAL may lose the last commits when
///   power fails: SQLite, "PRAGMA synchronous".)
/// - No automatic checkpoints, and readers that cannot write: SQLite before 3.51.3 can corrupt the file when one
///   connection checkpoints while another commits, so one connection does both.
/// - No memory mapping: an I/O error would be a signal instead of an error.
struct DatabaseOpening {
    let file: DatabaseFile
    let configuration: SQLiteStoreConfiguration
    let check: StoreCheck

    /// Opens the one connection that writes, making the database if there is none, checking it if it was not closed, and
    /// bringing its tables up to date.
    func writer() throws -> DatabaseQueue {
        let exists = try file.inspect()
        if !exists { try file.create() }
        do {
            let queue = try DatabaseQueue(path: file.path, configuration: settings(isReader: false))
            try queue.writeWithoutTransaction { database in
                try refuseReadOnly(database)
                if exists {
                    try checkOwner(database)
                } else {
                    // Before the write-ahead log is switched on, so that the header itself says whose it is.
                    try database.execute(sql: "PRAGMA application_id = \(DatabaseFile.applicationID)")
                }
                try setDurable(database)
                try check.run(database)
            }
            try migrate(queue, isNew: !exists)
            return queue
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    /// Brings the tables up to date.
    ///
    /// A mailbox that was carried over makes a large log, which is copied here rather than while somebody waits; but if
    /// somebody reads, a backup perhaps, by the writer later.
    private func migrate(_ queue: DatabaseQueue, isNew: Bool) throws {
        guard try queue.read({ try !Schema.migrator.hasCompletedMigrations($0) }) else { return }
        if !isNew { check.logger.notice("bringing the store up to date; with much in it this takes some seconds") }
        try Schema.migrator.migrate(queue)
        do {
            try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        } catch DatabaseError.SQLITE_BUSY {
            return
        }
    }

    /// Opens a connection that can only read.
    func reader() throws -> DatabaseQueue {
        do {
            return try DatabaseQueue(path: file.path, configuration: settings(isReader: true))
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    private func settings(isReader: Bool) -> Configuration {
        var settings = Configuration()
        settings.label = isReader ? "herald-store-reader" : "herald-store"
        settings.readonly = isReader
        // No foreign keys: rows refer to each other by numbers that the registry handed out itself.
        settings.foreignKeysEnabled = false
        let patience = configuration.readerPatience
        settings.busyMode = .timeout(Double(patience.wholeMilliseconds) / 1000)
        let cacheKiB = (isReader ? configuration.cacheBytes / 4 : configuration.cacheBytes) / 1024
        settings.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA mmap_size = 0;
                    PRAGMA wal_autocheckpoint = 0;
                    PRAGMA cache_size = -\(cacheKiB);
                    PRAGMA temp_store = MEMORY;
                    """
            )
            if isReader { try database.execute(sql: "PRAGMA query_only = 1") }
        }
        return settings
    }

    private func refuseReadOnly(_ database: Database) throws {
        guard sqlite3_db_readonly(database.sqliteConnection, "main") == 0 else {
            throw StoreError(
                .notWritable,
                "the store \(file.path) cannot be written; give its owner the right to write to it and to its folder"
            )
        }
    }

    /// The header on disk was checked before; what stands in the log may be newer.
    private func checkOwner(_ database: Database) throws {
        let owner = try Int64.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let version = try Int64.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        try file.check(
            applicationID: UInt32(truncatingIfNeeded: owner),
            version: UInt32(truncatingIfNeeded: version)
        )
    }

    private func setDurable(_ database: Database) throws {
        // What is deleted is overwritten, also in pages that become free: FAST would leave those as they are.
        try database.execute(
            sql: """
                PRAGMA synchronous = FULL;
                PRAGMA secure_delete = ON;
                PRAGMA journal_size_limit = \(configuration.logPageLimit * 4096);
                """
        )
        let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
        // A build of SQLite without memory mapping has nothing to answer to mmap_size.
        let answers = try [
            ("journal_mode", mode, "wal"),
            ("synchronous", String.fetchOne(database, sql: "PRAGMA synchronous"), "2"),
            ("secure_delete", String.fetchOne(database, sql: "PRAGMA secure_delete"), "1"),
            ("wal_autocheckpoint", String.fetchOne(database, sql: "PRAGMA wal_autocheckpoint"), "0"),
            ("mmap_size", String.fetchOne(database, sql: "PRAGMA mmap_size") ?? "0", "0"),
        ]
        for (name, answer, value) in answers where answer != value {
            throw StoreError(
                .unsafe,
                "SQLite does not accept \(name) = \(value) for the store \(file.path), without which nothing it stores "
                    + "is safe; put the data folder on a local disk"
            )
        }
    }
}
