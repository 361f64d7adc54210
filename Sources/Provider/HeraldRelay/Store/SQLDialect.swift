import HeraldModel

/// Differences between the two databases in the relay's statements.
enum SQLDialect: Sendable {
    case sqlite
    case postgresql

    /// A random UUID of version 4, as text.
    var randomUUID: String {
        switch self {
        // A function of this connection: built from SQLite's own, it would cost an eighth of a row.
        case .sqlite: "\(SQLiteDatabase.newIdentifier)()"
        case .postgresql: "gen_random_uuid()::text"
        }
    }

    static func list(_ numbers: some Sequence<Int64>) -> String {
        numbers.map(String.init).joined(separator: ",")
    }

    /// Clause that makes two relays pick different rows; a SQLite file has one writer at a time.
    var skipLocked: String { self == .sqlite ? "" : " FOR UPDATE SKIP LOCKED" }

    /// Clause that locks a row until the end of the transaction.
    var forUpdate: String { self == .sqlite ? "" : " FOR UPDATE" }

    var greatest: String { self == .sqlite ? "max" : "greatest" }

    /// The first bytes of a column, one more than the limit at most, since other programs may write values of any size and type.
    func bounded(_ column: String, _ limit: Int) -> String {
        switch self {
        case .sqlite: "substr(CAST(\(column) AS BLOB), 1, \(limit + 1))"
        case .postgresql: "left(\(column)::text, \(limit + 1))"
        }
    }

    /// A column that other programs write: its first bytes, or a time as ``moment(_:)`` reads it.
    func selection(_ column: QueueColumn) -> String {
        column.isTime && self == .postgresql ? time(column.name) : bounded(column.name, column.limit)
    }

    /// A time column as ``moment(_:)`` reads it.
    ///
    /// PostgreSQL's text of a time depends on settings of server, database and role. Its milliseconds since 1970 do not.
    func time(_ column: String) -> String {
        switch self {
        case .sqlite: column
        case .postgresql: "floor(extract(epoch FROM \(column)) * 1000)::text"
        }
    }

    /// The value of a time column; nil if it is none, as an infinity is, or a year that RFC 3339 cannot write.
    func moment(_ value: SQLValue) -> WallTime? {
        switch self {
        case .sqlite: StoredMoment.read(value)
        case .postgresql: value.int.map { WallTime(milliseconds: $0) }.flatMap { $0.hasRFC3339 ? $0 : nil }
        }
    }

    /// A time as milliseconds since 1970; NULL if the column holds no time.
    func milliseconds(_ column: String) -> String {
        switch self {
        case .sqlite: "\(SQLiteDatabase.moment)(\(column))"
        case .postgresql:
            """
            CASE WHEN floor(extract(epoch FROM \(column)) * 1000) BETWEEN \(WallTime.firstRFC3339) AND \(WallTime.lastRFC3339)
            THEN floor(extract(epoch FROM \(column)) * 1000)::bigint END
            """
        }
    }

    /// Condition for a row of `devices` whose token died and was not registered since; NULL if its times are unreadable.
    func isDead(_ table: String) -> String {
        let (died, registered) = ("\(table).dead_at", "\(table).registered_at")
        let order =
            switch self {
            case .sqlite: "\(milliseconds(registered)) <= \(milliseconds(died))"
            case .postgresql: "\(registered) <= \(died)"
            }
        return "(\(died) IS NOT NULL AND (\(registered) IS NULL OR \(order)))"
    }
}
