import Foundation
import GRDB
import GRDBSQLite
import HeraldModel
import Synchronization

/// The queue in a SQLite file that other programs write too.
///
/// It uses a rollback journal, since SQLite before 3.51.3 can corrupt a write-ahead log that several processes checkpoint.
/// Each transaction takes the write lock at its start, and waits while the file is locked.
final class SQLiteDatabase: SQLDatabase {
    /// Time limit for the lock of another program's transaction.
    static let lockTimeout = Duration.seconds(10)
    /// Memory for pages, in KiB: those of a claim and of the outcomes that one transaction writes.
    private static let cacheSize = 8192
    /// Length to which the file of the rollback journal is cut after a transaction, in bytes.
    private static let journalSize = 4 << 20

    /// Instructions of a statement between two steps of ``progressCount``: milliseconds, unless the disk is slow.
    private static let progressInterval: Int32 = 10_000

    /// Name of the function that makes an `apns_id`.
    static let newIdentifier = "new_apns_id"
    private static let identifiers = Mutex(IdentifierSource())

    let dialect = SQLDialect.sqlite
    private let path: String
    private let queue: DatabaseQueue
    private let progress = ProgressCounter()

    var progressCount: Int { progress.count.load(ordering: .relaxed) }

    /// Opens the file, or creates it.
    /// - Throws: ``RelayStoreError/Code/unusable``.
    init(path: String) throws {
        self.path = path
        if let error = RelayStoreError.noFolder(for: path) { throw error }
        var settings = Configuration()
        settings.label = "herald-relay"
        settings.busyMode = .timeout(Double(SQLiteDatabase.lockTimeout.wholeMilliseconds) / 1000)
        settings.foreignKeysEnabled = false

        // The connection keeps the counter with its settings.
        settings.prepareDatabase { [progress] database in
            sqlite3_progress_handler(
                database.sqliteConnection,
                SQLiteDatabase.progressInterval,
                { counter in
                    guard let counter else { return 0 }
                    let progress = Unmanaged<ProgressCounter>.fromOpaque(counter).takeUnretainedValue()
                    progress.count.add(1, ordering: .relaxed)
                    return 0
                },
                Unmanaged.passUnretained(progress).toOpaque()
            )
            database.add(
                function: DatabaseFunction(SQLiteDatabase.newIdentifier, argumentCount: 0) { _ in
                    SQLiteDatabase.identifiers.withLock { $0.identifier() }.description
                }
            )
            try database.execute(
                sql: """
                    PRAGMA mmap_size = 0; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
                    PRAGMA cache_size = -\(SQLiteDatabase.cacheSize); PRAGMA journal_size_limit = \(SQLiteDatabase.journalSize)
                    """
            )
        }
        do {
            queue = try DatabaseQueue(path: path, configuration: settings)
            try queue.writeWithoutTransaction { try SQLiteDatabase.keepJournal($0, path) }
        } catch let error as RelayStoreError {
            throw error
        } catch {
            // Locked, or on a full or failing disk: that passes.
            let isPassing = [.SQLITE_BUSY, .SQLITE_FULL, .SQLITE_IOERR].contains((error as? DatabaseError)?.resultCode)
            throw RelayStoreError(
                isPassing ? .unavailable : .unusable,
                "cannot open the queue \(path): \(SQLiteDatabase.reason(error))"
            )
        }
    }

    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        let path = path
        do {
            return try await queue.writeWithoutTransaction { database in
                // Another program may have changed the journal mode. The check needs no I/O.
                try SQLiteDatabase.keepJournal(database, path)
                var result: Value?
                try database.inTransaction(.immediate) {
                    result = try body(SQLiteSession(database: database))
                    return .commit
                }
                guard let result else { throw RelayStoreError(.failed, "the transaction did not end") }
                return result
            }
        } catch {
            throw self.error(error)
        }
    }

    func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        do {
            return try await queue.read { try body(SQLiteSession(database: $0)) }
        } catch {
            throw self.error(error)
        }
    }

    func changes() -> AsyncStream<Void> {
        FileWatch.changes(of: path)
    }

    func close() async {
        // Statements that are running end first. Closing twice is harmless.
        try? queue.close()
    }

    /// Chooses a rollback journal whose file stays: making and deleting it would cost more than writing it.
    ///
    /// The mode is this connection's own, but for the write-ahead log, which the file remembers.
    private static func keepJournal(_ database: Database, _ path: String) throws {
        let found = try String.fetchOne(database, sql: "PRAGMA journal_mode")?.lowercased()
        guard found != "persist" else { return }
        let mode = try? String.fetchOne(database, sql: "PRAGMA journal_mode = PERSIST")
        guard mode?.lowercased() == "persist" else {
            throw RelayStoreError(
                .unusable,
                "the queue \(path) is in WAL mode, which is not safe with several writers, and another program keeps it "
                    + "in that mode: close that program, or have it run PRAGMA journal_mode = DELETE"
            )
        }
        // Commits to the log did not change the header's change counter, so cached pages of this connection may be stale.
        if found == "wal" { try database.execute(sql: "PRAGMA shrink_memory") }
    }

    private func error(_ error: any Error) -> RelayStoreError {
        switch error {
        case let error as RelayStoreError: return error
        case let error as DatabaseError:
            let reason = "\(path): \(SQLiteDatabase.reason(error))"
            switch error.resultCode {
            case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_NOMEM, .SQLITE_CANTOPEN,
                .SQLITE_READONLY, .SQLITE_PROTOCOL, .SQLITE_SCHEMA, .SQLITE_INTERRUPT:
                return RelayStoreError(.unavailable, reason)
            default:
                return RelayStoreError(.failed, reason)
            }
        default: return RelayStoreError(.failed, "\(path): \(error)")
        }
    }

    /// SQLite's message, without the statement and its arguments.
    private static func reason(_ error: any Error) -> String {
        guard let error = error as? DatabaseError else { return "\(error)" }
        return "\(error.message ?? "no reason given"), SQLite error \(error.extendedResultCode.rawValue)"
    }
}

/// A number that grows while a statement runs.
private final class ProgressCounter: Sendable {
    let count = Atomic(0)
}

/// A transaction in SQLite.
private struct SQLiteSession: SQLSession {
    let database: Database

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        try run(try database.cachedStatement(sql: sql), arguments)
    }

    func runOnce(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        try run(try database.makeStatement(sql: sql), arguments)
    }

    private static func value(_ handle: OpaquePointer, _ column: Int32) -> SQLValue {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_NULL: return .null
        case SQLITE_INTEGER: return .int(sqlite3_column_int64(handle, column))
        case SQLITE_FLOAT: return .text(String(sqlite3_column_double(handle, column)))
        default:
            // UTF-8 of a text; nil if it is empty.
            guard let start = sqlite3_column_blob(handle, column) else { return .bytes([]) }
            let count = Int(sqlite3_column_bytes(handle, column))
            return .bytes(Array(UnsafeRawBufferPointer(start: start, count: count)))
        }
    }

    private func run(_ statement: Statement, _ arguments: [SQLValue]) throws -> SQLResult {
        let values = StatementArguments(
            arguments.map { value -> DatabaseValue in
                switch value {
                case .null: .null
                case .int(let number): number.databaseValue
                case .bytes(let bytes): String(decoding: bytes, as: UTF8.self).databaseValue
                }
            }
        )
        var result = SQLResult()
        let before = database.totalChangesCount
        let rows = try Row.fetchCursor(statement, arguments: values)
        let handle = statement.sqliteStatement
        while try rows.next() != nil {
            // Reads SQLite's memory directly. Text through Foundation costs more than reading the row.
            result.rows.append((0..<sqlite3_column_count(handle)).map { SQLiteSession.value(handle, $0) })
        }
        result.changed = database.totalChangesCount - before
        return result
    }
}
