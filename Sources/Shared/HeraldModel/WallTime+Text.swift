extension WallTime {
    /// The first and the last moment that RFC 3339 can write in UTC, in milliseconds.
    package static let firstRFC3339: Int64 = -62_167_219_200_000
    package static let lastRFC3339: Int64 = 253_402_300_799_999

    /// Whether RFC 3339 can write the moment.
    package var hasRFC3339: Bool { (WallTime.firstRFC3339...WallTime.lastRFC3339).contains(milliseconds) }
    /// The last second of RFC 3339, the end of the year 9999.
    package static let lastSecond = lastRFC3339 / 1000

    /// The moment in RFC 3339, in UTC with milliseconds: `2026-11-21T02:34:56.789Z`.
    ///
    /// Saturates at the year 9999, the last one of RFC 3339.
    package var rfc3339: String {
        let total = min(max(milliseconds, WallTime.firstRFC3339), WallTime.lastRFC3339)
        let (day, inDay) = WallTime.floorDivide(total, 86_400_000)
        let (year, month, dayOfMonth) = WallTime.civil(day)
        func digits(_ value: Int64, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let date = "\(digits(year, 4))-\(digits(month, 2))-\(digits(dayOfMonth, 2))"
        let time = "\(digits(inDay / 3_600_000, 2)):\(digits(inDay / 60_000 % 60, 2)):\(digits(inDay / 1000 % 60, 2))"
        return "\(date)T\(time).\(digits(inDay % 1000, 3))Z"
    }

    /// Reads `2026-11-21T02:34:56Z` or `2026-11-21T03:34:56+01:00`, with or without a fraction of a second (RFC 3339 §5.6).
    /// - Returns: nil for every other text, and for a day that does not exist.
    package init?(rfc3339 text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count > 19, bytes.count <= 35, bytes[10] | 0x20 == UInt8(ascii: "t"),
            let (offset, end) = WallTime.offset(bytes), end >= 19, let whole = WallTime(dateAndTime: bytes)
        else { return nil }
        var fraction: Int64 = 0
        if end > 19 {
            guard bytes[19] == UInt8(ascii: "."), (21...29).contains(end), WallTime.number(bytes, 20..<end) != nil
            else {
                return nil
            }
            for index in 20..<23 { fraction = fraction * 10 + (index < end ? Int64(bytes[index] - 0x30) : 0) }
        }
        self.init(milliseconds: whole.milliseconds + fraction - offset * 60_000)
        guard hasRFC3339 else { return nil }
    }

    /// The offset at the end of a time, in minutes, and where it begins.
    private static func offset(_ bytes: [UInt8]) -> (minutes: Int64, start: Int)? {
        guard let last = bytes.last, last != UInt8(ascii: "Z"), last != UInt8(ascii: "z") else {
            return (0, bytes.count - 1)
        }
        let start = bytes.count - 6
        guard start >= 0, bytes[start] == UInt8(ascii: "+") || bytes[start] == UInt8(ascii: "-"),
            bytes[start + 3] == UInt8(ascii: ":"), let hours = number(bytes, (start + 1)..<(start + 3)), hours < 24,
            let minutes = number(bytes, (start + 4)..<(start + 6)), minutes < 60
        else { return nil }
        return ((hours * 60 + minutes) * (bytes[start] == UInt8(ascii: "-") ? -1 : 1), start)
    }

    /// Reads the first 19 bytes of `2026-11-21T02:34:56`, in UTC, with any byte between date and time.
    /// - Returns: nil for other bytes, and for a day that does not exist.
    package init?(dateAndTime bytes: [UInt8]) {
        guard bytes.count >= 19, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            let year = WallTime.number(bytes, 0..<4), let month = WallTime.number(bytes, 5..<7),
            let day = WallTime.number(bytes, 8..<10), let hour = WallTime.number(bytes, 11..<13),
            let minute = WallTime.number(bytes, 14..<16), let second = WallTime.number(bytes, 17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        let days = WallTime.days(year, month, day)
        guard WallTime.civil(days) == (year, month, day) else { return nil }
        self.init(milliseconds: ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000)
    }

    private static func number(_ bytes: [UInt8], _ range: Range<Int>) -> Int64? {
        var value: Int64 = 0
        for index in range {
            guard (0x30...0x39).contains(bytes[index]) else { return nil }
            value = value * 10 + Int64(bytes[index] - 0x30)
        }
        return value
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    /// The days from 1970-01-01 to a date of the Gregorian calendar: years begin in March, so that the leap day is the
    /// last of a year, and 146,097 days are 400 years.
    package static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = floorDivide(shifted, 400)
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The date that is a number of days after 1970-01-01: the inverse of ``days(_:_:_:)``.
    package static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
