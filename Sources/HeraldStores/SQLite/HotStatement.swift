import GRDB
import GRDBSQLite

/// A prepared statement that is bound and stepped through SQLite's own functions: GRDB's arguments are arrays of
/// existentials, which cost nearly as much as the insertion itself.
///
/// Used only where its connection is. Texts and blobs are bound without a copy where the call says so; they must stay
/// until the step.
struct HotStatement {
    private let statement: Statement
    private let handle: OpaquePointer

    /// Prepares a statement, or with `isCached` takes the one that the connection keeps for whoever asks: not for one
    /// that may be asked for while it is still stepping.
    /// - Throws: `DatabaseError`.
    init(_ database: Database, sql: String, isCached: Bool = false) throws {
        statement = isCached ? try database.cachedStatement(sql: sql) : try database.makeStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    func bind(_ value: Int64, at index: CInt) {
        sqlite3_bind_int64(handle, index, value)
    }

    func bind(_ value: Int64?, at index: CInt) {
        if let value { sqlite3_bind_int64(handle, index, value) } else { sqlite3_bind_null(handle, index) }
    }

    /// Binds bytes that stay where they are until the step.
    func bind(borrowed bytes: UnsafeRawBufferPointer, at index: CInt) {
        // A null pointer would bind NULL.
        if bytes.isEmpty {
            sqlite3_bind_zeroblob(handle, index, 0)
        } else {
            sqlite3_bind_blob64(handle, index, bytes.baseAddress, sqlite3_uint64(bytes.count), nil)
        }
    }

    /// Binds a copy of a text, or NULL.
    func bind(copyOf text: String?, at index: CInt) {
        guard var text else {
            sqlite3_bind_null(handle, index)
            return
        }
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                _ = sqlite3_bind_text64(
                    handle,
                    index,
                    characters.baseAddress,
                    sqlite3_uint64(characters.count),
                    HotStatement.copied,
                    UInt8(SQLITE_UTF8)
                )
            }
        }
    }

    /// Runs a statement that gives no rows.
    /// - Throws: `DatabaseError`.
    func run() throws {
        let code = sqlite3_step(handle)
        sqlite3_reset(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else { throw HotStatement.error(code, handle) }
    }

    /// Runs a statement and hands every row to `body`, until there are no more or it returns false.
    /// - Throws: `DatabaseError`, and what `body` throws.
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
                throw HotStatement.error(code, handle)
            }
        }
    }

    private static func error(_ code: CInt, _ handle: OpaquePointer) -> DatabaseError {
        let connection = sqlite3_db_handle(handle)
        return DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection))
        )
    }

    /// SQLITE_TRANSIENT, a macro with a cast that Swift does not import.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}

/// A row under a statement's cursor; gone with the next step.
struct HotRow {
    fileprivate let handle: OpaquePointer

    func integer(_ column: CInt) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    func optionalInteger(_ column: CInt) -> Int64? {
        sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : sqlite3_column_int64(handle, column)
    }

    /// The bytes of a blob or text, until the next step or the next read of the column.
    func bytes(_ column: CInt) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    /// A text, or nil for NULL; bytes that are not UTF-8 are replaced.
    func text(_ column: CInt) -> String? {
        guard sqlite3_column_type(handle, column) != SQLITE_NULL else { return nil }
        return String(decoding: bytes(column), as: UTF8.self)
    }
}
