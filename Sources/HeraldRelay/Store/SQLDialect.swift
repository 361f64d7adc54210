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

    /// Numbers for an SQL list.
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

    /// A time as seconds since 1970; NULL if the column holds no time.
    func epoch(_ column: String) -> String {
        switch self {
        case .sqlite:
            """
            CASE WHEN typeof(\(column)) IN ('integer', 'real') THEN CAST(\(column) AS INTEGER) \
            WHEN \(column) <> '' AND \(column) NOT GLOB '*[^0-9]*' THEN CAST(\(column) AS INTEGER) \
            ELSE CAST(strftime('%s', \(column)) AS INTEGER) END
            """
        case .postgresql: "extract(epoch FROM \(column))::bigint"
        }
    }
}

/// Times in the tables: `2026-11-21 02:34:56` in UTC, the default form of both databases.
enum StoredMoment {
    static func text(_ moment: WallTime) -> SQLValue {
        let text = moment.rfc3339
        return .text(text.prefix(10) + " " + text.dropFirst(11).prefix(8))
    }

    /// With milliseconds, for comparisons within a second.
    static func exactText(_ moment: WallTime) -> SQLValue {
        let text = moment.rfc3339
        return .text(text.prefix(10) + " " + text.dropFirst(11).prefix(12))
    }

    /// Parses a time in a column; a number or the default form without a detour through text.
    static func read(_ value: SQLValue) -> WallTime? {
        switch value {
        case .null: return nil
        case .int(let seconds): return WallTime(seconds: seconds)
        case .bytes(let bytes):
            if bytes.count == 19, bytes[10] == UInt8(ascii: " "), let moment = WallTime(dateAndTime: bytes) {
                return moment
            }
            return value.text.flatMap { read($0) }
        }
    }

    /// Parses a time: seconds since 1970 with or without a fraction, RFC 3339, or the form of a database.
    static func read(_ text: String) -> WallTime? {
        let text = text.trimmingPrefix { $0 == " " }
        if let seconds = Int64(text) { return WallTime(seconds: seconds) }
        if let seconds = Double(text), seconds.isFinite, abs(seconds) < 1e12 {
            return WallTime(milliseconds: Int64((seconds * 1000).rounded()))
        }
        var form = Substring(text)
        for suffix in ["+00:00", "+00", "Z", "z"] where form.hasSuffix(suffix) {
            form = form.dropLast(suffix.count)
            break
        }
        guard form.utf8.count >= 10, form.utf8.count <= 40 else { return nil }
        let day = form.prefix(10)
        let rest = form.dropFirst(10)
        if rest.isEmpty { return WallTime(rfc3339: "\(day)T00:00:00Z") }
        guard rest.first == " " || rest.first == "T" || rest.first == "t" else { return nil }
        var time = String(rest.dropFirst())
        if time.utf8.count == 5 { time += ":00" }
        return WallTime(rfc3339: "\(day)T\(time)Z")
    }
}
