import HeraldModel

/// Times in the tables: `2026-11-21 02:34:56` in UTC, the default form of both databases.
///
/// It reads the columns of SQLite, which hold what other programs wrote. PostgreSQL reads its own, and the relay asks for
/// numbers.
enum StoredMoment {
    /// How far ahead a time of a row may be.
    ///
    /// A time beyond that is one in milliseconds, or of another calendar, and the row would wait for ever.
    static let longestWait = Duration.seconds(3653 * 86_400)

    /// Seconds since 1970 that a number may be: from September 2001 to the year 5138.
    ///
    /// A smaller number is a duration that was written by mistake, and a greater one is in milliseconds.
    private static let numbers: Range<Int64> = 1_000_000_000..<100_000_000_000

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
        case .int(let seconds): return numbers.contains(seconds) ? WallTime(seconds: seconds) : nil
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
        guard text.utf8.count <= 40, let first = text.utf8.first else { return nil }
        if text.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }) { return number(text) }
        let bytes = Array(text.utf8)
        guard isDigit(first), bytes.count >= 10 else { return nil }
        let day = text.prefix(10)
        var rest = text.dropFirst(10)
        guard !rest.isEmpty else { return WallTime(rfc3339: "\(day)T00:00:00Z") }
        guard let separator = rest.popFirst(), [" ", "T", "t"].contains(separator) else { return nil }
        let time = rest.prefix { isClock($0) }
        let offset = rest.dropFirst(time.count).drop { $0 == " " }
        let seconds = time.utf8.count == 5 ? ":00" : ""
        return Self.offset(offset).flatMap { WallTime(rfc3339: "\(day)T\(time)\(seconds)\($0)") }
    }

    /// Parses seconds since 1970; three digits of the fraction count.
    private static func number(_ text: Substring) -> WallTime? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let seconds = parts.first.flatMap({ Int64($0) }), numbers.contains(seconds) else {
            return nil
        }
        guard parts.count == 2, let fraction = parts.last else { return WallTime(seconds: seconds) }
        let digits = fraction.prefix(3)
        guard !digits.isEmpty, let milliseconds = Int64(digits + String(repeating: "0", count: 3 - digits.count)) else {
            return nil
        }
        return WallTime(seconds: seconds) + .milliseconds(milliseconds)
    }

    /// The offset of a time in the form of RFC 3339; programs and databases leave out the minutes, the colon or all of it.
    private static func offset(_ text: Substring) -> String? {
        guard let sign = text.first else { return "Z" }
        if text == "Z" || text == "z" || text == "UTC" { return "Z" }
        guard sign == "+" || sign == "-" else { return nil }
        let digits = text.dropFirst()
        switch digits.utf8.count {
        case 2: return "\(sign)\(digits):00"
        case 4: return "\(sign)\(digits.prefix(2)):\(digits.suffix(2))"
        default: return String(text)
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isClock(_ character: Character) -> Bool {
        character == ":" || character == "." || (character.asciiValue.map(isDigit) ?? false)
    }
}
