import Foundation
import GRDB
import HeraldModel

/// A row whose damaged values are errors; GRDB's own subscripts trap on them.
struct CheckedRow {
    private let row: Row

    static func forEach(
        _ database: Database,
        sql: String,
        _ arguments: StatementArguments = [],
        _ body: (CheckedRow) throws -> Void
    ) throws {
        let cursor = try Row.fetchCursor(database.cachedStatement(sql: sql), arguments: arguments)
        while let row = try cursor.next() { try body(CheckedRow(row: row)) }
    }

    /// Reads all rows.
    /// - Throws: `DatabaseError`, also for a damaged row.
    static func all<Value>(
        _ database: Database,
        sql: String,
        _ arguments: StatementArguments,
        _ read: (CheckedRow) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try forEach(database, sql: sql, arguments) { values.append(try read($0)) }
        return values
    }

    func isNull(_ column: Int) -> Bool { (row[column] as DatabaseValue).isNull }

    func integer(_ column: Int) throws -> Int64 { try value(column) }

    /// An integer that the type can hold.
    func number<Number: FixedWidthInteger>(_ column: Int) throws -> Number {
        try CheckedRow.valid(Number(exactly: try integer(column)))
    }

    func text(_ column: Int) throws -> String { try value(column) }
    func optionalText(_ column: Int) throws -> String? { isNull(column) ? nil : try text(column) }

    func bytes(_ column: Int) throws -> [UInt8] { Array(try value(column) as Data) }
    func optionalBytes(_ column: Int) throws -> [UInt8]? { isNull(column) ? nil : try bytes(column) }

    func time(_ column: Int) throws -> WallTime { WallTime(milliseconds: try integer(column)) }
    func optionalTime(_ column: Int) throws -> WallTime? { isNull(column) ? nil : try time(column) }

    private func value<Value: DatabaseValueConvertible>(_ column: Int) throws -> Value {
        try CheckedRow.valid(Value.fromDatabaseValue(row[column]))
    }

    /// Unwraps a value; nil means a damaged file.
    static func valid<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row is invalid") }
        return value
    }
}
