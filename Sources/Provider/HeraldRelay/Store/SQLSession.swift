/// A value of a database; text and blobs are bytes, since other programs write the queue.
package enum SQLValue: Hashable, Sendable {
    case null
    case int(Int64)
    case bytes([UInt8])

    package static func text(_ text: String) -> SQLValue { .bytes(Array(text.utf8)) }

    package static func text(_ text: String?) -> SQLValue { text.map { .bytes(Array($0.utf8)) } ?? .null }

    package var bytes: [UInt8]? {
        switch self {
        case .null: nil
        case .int(let number): Array(String(number).utf8)
        case .bytes(let bytes): bytes
        }
    }

    /// The text; nil for NULL and for bytes that are not UTF-8.
    package var text: String? { bytes.flatMap { String(validating: $0, as: UTF8.self) } }

    /// The number; nil for NULL and for other text.
    package var int: Int64? {
        if case .int(let number) = self { return number }
        return text.flatMap { Int64($0) }
    }
}

/// An open transaction; parameters are numbered, `?1` and `?2`, in both databases.
protocol SQLSession {
    var dialect: SQLDialect { get }
    var tables: TableNames { get }

    /// Runs a statement with its parameters. SQLite prepares it once for the connection.
    @discardableResult
    func run(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult

    /// Runs a statement whose text varies. It is not kept.
    func runOnce(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult
}

extension SQLSession {
    @discardableResult
    func run(_ sql: String) throws -> SQLResult { try run(sql, []) }
}

/// Result of a statement.
struct SQLResult {
    var rows: [SQLRow] = []
    var changed = 0
}

/// A row of a result.
struct SQLRow: Sendable {
    let values: [SQLValue]

    /// The value of a column, counted from 0.
    /// - Throws: ``RelayStoreError`` if the row has no such column.
    subscript(column: Int) -> SQLValue {
        get throws(RelayStoreError) {
            guard values.indices.contains(column) else { throw missing(column) }
            return values[column]
        }
    }

    /// The values from a column to the last one.
    /// - Throws: ``RelayStoreError`` if their number is another one.
    func last(_ count: Int, from column: Int) throws(RelayStoreError) -> ArraySlice<SQLValue> {
        guard values.indices.contains(column), values.count - column == count else { throw missing(column) }
        return values[column...]
    }

    /// Such a row answers another statement: the connection is not the relay's own any more.
    private func missing(_ column: Int) -> RelayStoreError {
        RelayStoreError(
            .unavailable,
            "the database answered another statement: a row with \(values.count) columns has no column \(column)",
            endsConnection: true
        )
    }
}

/// The database with the relay's tables.
protocol SQLDatabase: Sendable {
    var dialect: SQLDialect { get }
    var tables: TableNames { get }
    /// A number that grows while a statement runs; constant if each statement has a time limit.
    var progressCount: Int { get }
    /// Runs a short read-write transaction.
    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
    /// Runs a read-only transaction.
    func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
    /// Warnings about the database for an operator, one line each.
    func warnings() async throws -> [String]
    /// Reports writes by other programs, as ``RelayStore/changes(note:)`` says.
    func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void>
    func close() async
}

extension SQLDatabase {
    var progressCount: Int { 0 }
}
