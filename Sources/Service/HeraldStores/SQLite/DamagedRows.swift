import GRDB
import Logging
import Synchronization

/// Counts the damaged rows that readers leave out, and logs the first one of each table.
final class DamagedRows: Sendable {
    private let counts = Mutex<[String: Int]>([:])
    private let logger: Logger

    init(logger: Logger) {
        self.logger = logger
    }

    /// Damaged rows read since the start; a row counts each time it is read.
    var total: Int { counts.withLock { $0.values.reduce(0, +) } }

    func add(_ table: String) {
        let isFirst = counts.withLock { counts in
            counts[table, default: 0] += 1
            return counts[table] == 1
        }
        guard isFirst else { return }
        logger.error(
            "left out a damaged row of the store; check the disk, restore a backup",
            metadata: ["table": "\(table)"]
        )
    }

    /// Reads a row's value.
    /// - Returns: nil for a damaged row, which is counted.
    /// - Throws: Errors of `read` that are not about the row.
    func leaveOut<Value>(_ table: String, _ read: () throws -> Value) rethrows -> Value? {
        do {
            return try read()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            add(table)
            return nil
        }
    }

    /// Reads all valid rows.
    /// - Throws: `DatabaseError`, but not for a damaged row.
    func valid<Value>(
        of table: String,
        _ database: Database,
        sql: String,
        _ arguments: StatementArguments = [],
        _ read: (CheckedRow) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try CheckedRow.forEach(database, sql: sql, arguments) { row in
            if let value = try leaveOut(table, { try read(row) }) { values.append(value) }
        }
        return values
    }
}
