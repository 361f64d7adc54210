import GRDB
import GRDBSQLite

/// How many pages the write-ahead log holds after the last commit, as SQLite tells in its hook.
///
/// The hook takes the place of the automatic checkpoint.
final class LogCounter {
    private let connection: OpaquePointer?
    private let count: UnsafeMutablePointer<CInt>

    init(_ database: Database) {
        connection = database.sqliteConnection
        count = .allocate(capacity: 1)
        count.initialize(to: 0)
        sqlite3_wal_hook(
            connection,
            { context, _, _, pages in
                context?.assumingMemoryBound(to: CInt.self).pointee = pages
                return SQLITE_OK
            },
            count
        )
    }

    var pages: Int { Int(count.pointee) }

    /// To be called while the connection is open, last.
    func stop() {
        sqlite3_wal_hook(connection, nil, nil)
    }

    deinit {
        count.deallocate()
    }
}
