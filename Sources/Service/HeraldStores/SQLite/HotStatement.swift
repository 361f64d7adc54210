import GRDB
import GRDBSQLite

/// A prepared statement for the hot path, bound and stepped with SQLite's own functions.
///
/// GRDB's arguments are arrays of existentials, which cost nearly as much as the insertion itself. A statement is used only
/// within its connection's access.
struct HotStatement {
    private let statement: Statement
    private let handle: OpaquePointer

    /// Prepares a statement, or takes it from the connection's cache, which has one of each: a cached statement must not
    /// be used again while it is stepping.
    /// - Throws: `DatabaseError`.
    init(_ database: Database, sql: String, isCached: Bool = false) throws {
        statement = isCached ? try database.cachedStatement(sql: sql) : try database.makeStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    func bind(_ value: Int64, at index: CInt) {
        sqlite3_bind_int64(handle, index, value)
    }

    /// Binds bytes without a copy; they must be valid until the step.
    func bind(borrowed bytes: UnsafeRawBufferPointer, at index: CInt) {
        // A null pointer would bind NULL.
        if bytes.isEmpty {
            sqlite3_bind_zeroblob(handle, index, 0)
        } else {
            sqlite3_bind_blob64(handle, index, bytes.baseAddress, sqlite3_uint64(bytes.count), nil)
        }
    }

    /// Runs a statement without result rows.
    /// - Throws: `DatabaseError`.
    func run() throws {
        let code = sqlite3_step(handle)
        sqlite3_reset(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else { throw HotStatement.error(handle) }
    }

    /// Runs a statement and passes its rows to `body`, until `body` returns false.
    /// - Throws: `DatabaseError`, and errors of `body`.
    func forEachRow(_ body: (HotRow) throws -> Bool) throws {
        defer { sqlite3_reset(handle) }
        while true {
            let code = sqlite3_step(handle)
            switch code {
            case SQLITE_ROW:
                guard try body(HotRow(handle: handle)) else { return }
            case SQLITE_DONE:
                return
            default:
                throw HotStatement.error(handle)
            }
        }
    }

    private static func error(_ handle: OpaquePointer) -> DatabaseError {
        let connection = sqlite3_db_handle(handle)
        return DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection))
        )
    }
}

/// A row under a statement's cursor, valid until the next step.
struct HotRow {
    fileprivate let handle: OpaquePointer

    func integer(_ column: CInt) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    func optionalInteger(_ column: CInt) -> Int64? {
        sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : sqlite3_column_int64(handle, column)
    }

    /// An integer, where ``integer(_:)`` converts every other value.
    /// - Throws: `DatabaseError` for a value of another type.
    func checkedInteger(_ column: CInt) throws -> Int64 {
        try CheckedRow.valid(sqlite3_column_type(handle, column) == SQLITE_INTEGER ? integer(column) : nil)
    }

    /// As ``checkedInteger(_:)``, or nil for NULL.
    func checkedOptionalInteger(_ column: CInt) throws -> Int64? {
        sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : try checkedInteger(column)
    }

    /// The bytes of a blob or text, valid until the next step or the next read of the column.
    func bytes(_ column: CInt) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    /// A text, or nil for NULL; invalid UTF-8 is replaced.
    func text(_ column: CInt) -> String? {
        guard sqlite3_column_type(handle, column) != SQLITE_NULL else { return nil }
        return String(decoding: bytes(column), as: UTF8.self)
    }
}
