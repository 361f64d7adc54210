/// A value on its way to or from a database: text and blobs alike as their bytes, since the queue is written by others.
package enum SQLValue: Hashable, Sendable {
    case null
    case int(Int64)
    case bytes([UInt8])

    package static func text(_ text: String) -> SQLValue { .bytes(Array(text.utf8)) }

    package static func text(_ text: String?) -> SQLValue { text.map { .bytes(Array($0.utf8)) } ?? .null }

    package static func int(_ number: Int64?) -> SQLValue { number.map { .int($0) } ?? .null }

    package var bytes: [UInt8]? {
        switch self {
        case .null: nil
        case .int(let number): Array(String(number).utf8)
        case .bytes(let bytes): bytes
        }
    }

    /// The text; nil for null, and for what is not UTF-8.
    package var text: String? { bytes.flatMap { String(validating: $0, as: UTF8.self) } }

    /// The number; nil for null, and for what is none.
    package var int: Int64? {
        if case .int(let number) = self { return number }
        return text.flatMap { Int64($0) }
    }
}

/// A transaction, while it is open.
///
/// Statements have numbered parameters, `?1`, `?2`, in either database.
protocol SQLSession {
    /// Runs one statement. - Parameters: - sql:
    ///
    /// The statement. One that is the same each time is prepared once. - arguments: Its parameters in order. - Returns:
    /// The rows, and how many were changed.
    @discardableResult
    func run(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult

    /// Runs a statement whose text is another one each time.
    func runOnce(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult
}

extension SQLSession {
    @discardableResult
    func run(_ sql: String) throws -> SQLResult { try run(sql, []) }
}

/// What a statement gave.
struct SQLResult {
    var rows: [[SQLValue]] = []
    /// How many rows it changed.
    var changed = 0
}

/// A database that the relay's tables are in.
protocol SQLDatabase: Sendable {
    var dialect: SQLDialect { get }
    /// Runs a transaction that writes. It is short: nothing but statements happens in it.
    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
    /// Runs a transaction that only reads.
    func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
    /// Tells, at once if it can, that others have written; at least once when it begins.
    func changes() -> AsyncStream<Void>
    func close() async
}
