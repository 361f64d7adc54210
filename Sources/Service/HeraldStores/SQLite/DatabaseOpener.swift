import Foundation
import GRDB
import GRDBSQLite
import HeraldModel
import Logging

/// Opens connections to the store's file with the settings that durability needs, and reads each setting back.
///
/// - Write-ahead log with `synchronous` FULL: a commit is on disk when it returns. NORMAL may lose the last commits when
///   power fails (SQLite, "PRAGMA synchronous").
/// - No automatic checkpoints, and readers that cannot write. SQLite before 3.51.3 can corrupt the file when one
///   connection checkpoints while another commits, so one connection does both.
/// - No memory mapping: an I/O error would be a signal instead of an error.
struct DatabaseOpener {
    let file: DatabaseFile
    let configuration: SQLiteStoreConfiguration
    let logger: Logger
    var schema = Schema.current
    /// Gets each step that may take long.
    var onStep: @Sendable (SQLiteStore.OpeningStep) -> Void = { _ in }

    /// Opens the one connection that writes: creates a missing store, checks one that was not closed cleanly, and
    /// migrates one of an older format.
    func writer() throws -> DatabaseQueue {
        let exists = try file.inspect(newestFormat: schema.format) != nil
        if !exists { try file.create() }
        do {
            let queue = try DatabaseQueue(path: file.path, configuration: settings(isReader: false))
            try queue.writeWithoutTransaction { database in
                try refuseReadOnly(database)
                if exists {
                    try checkOwner(database)
                } else {
                    // Before the write-ahead log is switched on, so that the header itself has it.
                    try database.execute(sql: "PRAGMA application_id = \(DatabaseFile.applicationID)")
                }
                try setDurable(database)
                try checkContent(database)
                try migrate(database)
            }
            return queue
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    /// Makes the tables, or migrates them.
    ///
    /// A migration may leave a large write-ahead log, which is copied before commits wait for it. If a reader is in the
    /// way, a backup perhaps, the writer copies it later.
    private func migrate(_ database: Database) throws {
        let format = try Schema.format(of: database)
        guard format != schema.format else { return }
        if format != 0 {
            onStep(.upgrading)
            logger.notice("upgrading the store; this can take some seconds")
        }
        try schema.apply(to: database)
        do { _ = try database.checkpoint(.truncate) } catch DatabaseError.SQLITE_BUSY {}
    }

    /// Opens a connection that can only read.
    func reader() throws -> DatabaseQueue {
        do {
            return try DatabaseQueue(path: file.path, configuration: settings(isReader: true))
        } catch {
            throw StoreError(opening: error, path: file.path)
        }
    }

    /// Opens a connection that checks a store which no process has open, and changes nothing.
    ///
    /// A connection that can only read would leave a log beside a store that has none. With the right to write it removes
    /// that log again, but would copy the log of a store that was not closed.
    func checker() throws -> DatabaseQueue {
        var settings = settings(isReader: true)
        settings.readonly = access(file.path + "-wal", F_OK) == 0
        return try DatabaseQueue(path: file.path, configuration: settings)
    }

    private func settings(isReader: Bool) -> Configuration {
        var settings = Configuration()
        settings.label = isReader ? "herald-store-reader" : "herald-store"
        settings.readonly = isReader
        // No foreign keys: rows refer to each other by numbers that the registry handed out itself.
        settings.foreignKeysEnabled = false
        let timeout = configuration.readerTimeout
        settings.busyMode = .timeout(Double(timeout.wholeMilliseconds) / 1000)
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
                "the store \(file.path) is read-only; give its owner write permission for it and its folder"
            )
        }
    }

    /// Checks a store that was not closed cleanly.
    func checkContent(_ database: Database) throws {
        try IntegrityCheck(configuration: configuration, logger: logger) { onStep(.checking) }.run(database)
    }

    /// Checks owner and format again: the write-ahead log may hold a newer header than the file.
    func checkOwner(_ database: Database) throws {
        let owner = try Int64.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        try file.check(
            applicationID: UInt32(truncatingIfNeeded: owner),
            format: try Schema.format(of: database),
            newestFormat: schema.format
        )
    }

    private func setDurable(_ database: Database) throws {
        // SQLite overwrites deleted content, also in pages that become free, which FAST would leave unchanged.
        try database.execute(
            sql: """
                PRAGMA synchronous = FULL;
                PRAGMA secure_delete = ON;
                PRAGMA journal_size_limit = \(configuration.logPageLimit * 4096);
                """
        )
        let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
        // A build of SQLite without memory mapping does not answer mmap_size.
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
                "SQLite does not accept \(name) = \(value) for the store \(file.path), and commits are not durable "
                    + "without it; put the data folder on a local disk"
            )
        }
    }
}
