import GRDB

extension Database {
    /// Runs a statement that changes at most one row.
    /// - Returns: Whether it changed a row.
    func changes(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        return changesCount > 0
    }
}
