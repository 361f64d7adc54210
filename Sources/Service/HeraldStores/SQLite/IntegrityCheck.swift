import GRDB
import Logging

/// Checks a file that was not closed cleanly, before anything is read from it or migrated.
struct IntegrityCheck {
    /// The small tables that matter most: checked completely in a file of any size.
    private static let vitalTables = [
        "device", "app", "registration", "feedback", "setting", "channel", "broadcast", "tombstone",
    ]

    /// Tables whose readers leave out a row with a value of a wrong type.
    private static let tolerantTables = [
        "journal", "tally", "device", "app", "registration", "feedback", "channel", "broadcast",
    ]

    let configuration: SQLiteStoreConfiguration
    let logger: Logger
    /// Called before a check.
    var begins: () -> Void = {}

    /// Checks the file if it was not closed cleanly.
    ///
    /// Some hundred megabytes take a second, so the check is bounded. A small file is checked completely, of a large one
    /// the vital tables. The start reads the mailbox anyway, and a search skips damaged rows of the journal. A row with a
    /// value of a wrong type is left out when it is read.
    /// - Throws: `DatabaseError`.
    func run(_ database: Database) throws {
        let tables = Set(try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'"))
        // There are no tables if the first start was interrupted.
        guard tables.contains("setting"), try !StoreSettings.isClean(database) else { return }
        begins()
        logger.notice("the store was not closed cleanly; checking it")
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        if pages <= configuration.fullCheckPages {
            try quickCheck(database, sql: "PRAGMA quick_check")
        } else {
            for table in IntegrityCheck.vitalTables where tables.contains(table) {
                try quickCheck(database, sql: "PRAGMA quick_check('\(table)')")
            }
        }
    }

    private func quickCheck(_ database: Database, sql: String) throws {
        // At most 100 answers, those about pages before those about rows.
        let answers = try String.fetchAll(database, sql: sql).filter { $0 != "ok" }
        if let fatal = answers.first(where: { !IntegrityCheck.isAboutTolerantRow($0) }) {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: fatal)
        }
    }

    /// Whether an answer is one like `non-INTEGER value in journal.last_time`.
    private static func isAboutTolerantRow(_ answer: String) -> Bool {
        tolerantTables.contains { answer.contains(" value in \($0).") }
    }
}
