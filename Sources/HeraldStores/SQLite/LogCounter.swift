import GRDB
import GRDBSQLite

/// How many pages the write-ahead log holds after the last commit, as SQLite tells in its hook.
///
/// The hook takes the place of the automatic checkpoint. It goes with the counter, which must therefore go before the
/// connection is closed: it belongs to the ``Writer``, which never leaves the connection's access.
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

    deinit {
        sqlite3_wal_hook(connection, nil, nil)
        count.deallocate()
    }
}
