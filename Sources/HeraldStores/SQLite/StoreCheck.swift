import GRDB
import Logging

/// Looks through a file that was not closed, before anything is done with it: also before its tables are brought up to
/// date, which writes what it has read.
struct StoreCheck {
    /// Tables that are small and matter most, and the former mailbox: checked from end to end.
    private static let vitalTables = [
        "device", "app", "registration", "feedback", "setting", "channel", "broadcast", "dead", "mailbox",
    ]

    let configuration: SQLiteStoreConfiguration
    let logger: Logger

    /// Checks the file if it was not closed.
    ///
    /// A check takes a second for some hundred megabytes, so it is bounded: a small file is checked from end to end, of
    /// a large one the tables that matter most. The mailbox is read anyway, and the journal tells no lies: a row of it
    /// that makes no sense is left out.
    /// - Throws: `DatabaseError`.
    func run(_ database: Database) throws {
        let tables = Set(try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'"))
        // None, if the making of the store was interrupted.
        guard tables.contains("setting"), try !StoreSettings.isClean(database) else { return }
        logger.notice("the store was not closed cleanly; checking it")
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        if pages <= configuration.fullCheckPages {
            try quickCheck(database, sql: "PRAGMA quick_check(1)")
        } else {
            for table in StoreCheck.vitalTables where tables.contains(table) {
                try quickCheck(database, sql: "PRAGMA quick_check('\(table)')")
            }
        }
    }

    private func quickCheck(_ database: Database, sql: String) throws {
        guard let answer = try String.fetchOne(database, sql: sql), answer != "ok" else { return }
        throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: answer)
    }
}
