import GRDB

/// The prepared statements that begin and end transactions.
struct TransactionStatements {
    let begin: HotStatement
    let commit: HotStatement
    let rollback: HotStatement
    let savepoint: HotStatement
    let release: HotStatement
    let rollbackToSavepoint: HotStatement

    init(_ database: Database) throws {
        begin = try HotStatement(database, sql: "BEGIN IMMEDIATE")
        commit = try HotStatement(database, sql: "COMMIT")
        rollback = try HotStatement(database, sql: "ROLLBACK")
        savepoint = try HotStatement(database, sql: "SAVEPOINT job")
        release = try HotStatement(database, sql: "RELEASE job")
        rollbackToSavepoint = try HotStatement(database, sql: "ROLLBACK TO job")
    }
}
