import HeraldModel

/// In what the two databases differ, as far as the relay's statements are concerned.
enum SQLDialect: Sendable {
    case sqlite
    case postgresql

    /// A random UUID of version 4, as text.
    var randomUUID: String {
        switch self {
        case .sqlite:
            """
            lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' \
            || substr('89AB', 1 + (abs(random()) % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
            """
        case .postgresql: "gen_random_uuid()::text"
        }
    }

    /// What keeps two relays from picking the same rows; a file of SQLite has one writer at a time anyway.
    var skipLocked: String { self == .sqlite ? "" : " FOR UPDATE SKIP LOCKED" }

    /// What keeps a row as it is until the end of the transaction.
    var forUpdate: String { self == .sqlite ? "" : " FOR UPDATE" }

    var greatest: String { self == .sqlite ? "max" : "greatest" }

    /// A column's bytes, no more than one past a limit: what others put into a queue may be of any size and type.
    func bounded(_ column: String, _ limit: Int) -> String {
        switch self {
        case .sqlite: "substr(CAST(\(column) AS BLOB), 1, \(limit + 1))"
        case .postgresql: "left(\(column)::text, \(limit + 1))"
        }
    }

    /// A moment in a column as seconds since 1970; null for what is no moment.
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

/// How moments stand in the tables: `2026-11-21 02:34:56` in UTC, which both databases write by themselves.
enum StoredMoment {
    static func text(_ moment: WallTime) -> SQLValue {
        let text = moment.rfc3339
        return .text(text.prefix(10) + " " + text.dropFirst(11).prefix(8))
    }

    /// The same with milliseconds, where it is compared with what happened in the same second.
    static func exactText(_ moment: WallTime) -> SQLValue {
        let text = moment.rfc3339
        return .text(text.prefix(10) + " " + text.dropFirst(11).prefix(12))
    }

    /// Reads a moment as a person or a program wrote it: whole or broken seconds since 1970, RFC 3339, or as the
    /// databases write it.
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
