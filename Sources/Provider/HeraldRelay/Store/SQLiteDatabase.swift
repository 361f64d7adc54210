import Foundation
import GRDB
import GRDBSQLite
import HeraldModel
import Synchronization

/// The queue in a SQLite file that other programs write too.
///
/// It uses a rollback journal, since SQLite before 3.51.3 can corrupt a write-ahead log that several processes checkpoint.
/// But a file that another program keeps in WAL mode stays in that mode. Each transaction takes the write lock at its start,
/// and waits while the file is locked.
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

    /// Name of the function that parses a time: milliseconds since 1970, or NULL.
    static let moment = "moment_milliseconds"
    /// The first version whose write-ahead log several programs can use without damage.
    private static let safeLogVersion: Int32 = 3_051_003

    let dialect = SQLDialect.sqlite
    let tables: TableNames
    private let path: String
    private let queue: DatabaseQueue
    private let progress = ProgressCounter()

    var progressCount: Int { progress.count.load(ordering: .relaxed) }

    /// Opens the file, or creates it.
    /// - Throws: ``RelayStoreError/Code/unusable``.
    init(path: String, tables: TableNames) throws {
        self.path = path
        self.tables = tables
        try QueueFile.make(path)
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
            database.add(
                function: DatabaseFunction(SQLiteDatabase.moment, argumentCount: 1, pure: true) { values in
                    values.first.flatMap { StoredMoment.read(SQLValue($0)) }?.milliseconds
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
            try queue.writeWithoutTransaction { database in
                let encoding = try String.fetchOne(database, sql: "PRAGMA encoding")
                guard encoding == "UTF-8" else {
                    throw RelayStoreError(
                        .unusable,
                        "\(path) keeps its texts in \(encoding ?? "?"): the relay needs UTF-8"
                    )
                }
                try SQLiteDatabase.keepJournal(database)
            }
        } catch let error as RelayStoreError {
            throw error
        } catch {
            throw RelayStoreError(.unusable, "cannot open the queue \(path): \(SQLiteDatabase.reason(error))")
        }
    }

    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        let tables = tables
        do {
            return try await queue.writeWithoutTransaction { database in
                var result: Value?
                try database.inTransaction(.immediate) {
                    result = try body(SQLiteSession(database: database, tables: tables))
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
        let tables = tables
        do {
            return try await queue.read { try body(SQLiteSession(database: $0, tables: tables)) }
        } catch {
            throw self.error(error)
        }
    }

    func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> {
        FileWatch.changes(of: path)
    }

    func warnings() async throws -> [String] {
        var warnings = [QueueFile.warning(path)].compactMap { $0 }
        guard sqlite3_libversion_number() < SQLiteDatabase.safeLogVersion else { return warnings }
        do {
            let mode = try await queue.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") }
            guard mode?.lowercased() == "wal" else { return warnings }
        } catch {
            throw self.error(error)
        }
        warnings.append(
            """
            the queue is in WAL mode, and stays in it; SQLite before 3.51.3 (this is \(String(cString: sqlite3_libversion()))) \
            can damage such a file when several programs write to it
            """
        )
        return warnings
    }

    func close() async {
        // Statements that are running end first. Closing twice is harmless.
        try? queue.close()
    }

    /// Keeps the file of a rollback journal: making and deleting it would cost more than writing it.
    ///
    /// That is this connection's own mode. The write-ahead log is the file's, and stays as other programs want it.
    private static func keepJournal(_ database: Database) throws {
        guard try String.fetchOne(database, sql: "PRAGMA journal_mode")?.lowercased() != "wal" else { return }
        try database.execute(sql: "PRAGMA journal_mode = PERSIST")
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
    let tables: TableNames
    var dialect: SQLDialect { .sqlite }

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
            let values = (0..<sqlite3_column_count(handle)).map { SQLiteSession.value(handle, $0) }
            result.rows.append(SQLRow(values: values))
        }
        result.changed = database.totalChangesCount - before
        return result
    }
}

extension SQLValue {
    /// An argument of a function in SQL.
    fileprivate init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let number): self = .int(number)
        case .double(let number): self = .text(String(number))
        case .string(let text): self = .text(text)
        case .blob(let data): self = .bytes(Array(data))
        }
    }
}
