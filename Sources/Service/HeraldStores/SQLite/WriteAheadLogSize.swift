import GRDB
import GRDBSQLite

/// Pages in the write-ahead log after the last commit, as SQLite reports them in its hook.
///
/// The hook replaces the automatic checkpoint. It ends with this object, which must end before the connection closes: the
/// ``Writer`` owns it and never leaves the connection's access.
final class WriteAheadLogSize {
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
