package import HeraldModel

/// A moment as calendars and ASN.1 write it: year, month, day, and time of day in UTC, in the Gregorian calendar.
struct CivilTime: Hashable, Sendable {
    var year: Int
    var month: Int
    var day: Int
    var hour: Int
    var minute: Int
    var second: Int

    init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
    }

    /// The civil time of a moment, to the second.
    init(_ moment: WallTime) {
        // Years that ASN.1 and ISO 8601 write with four digits: 0001 to 9999.
        let seconds = min(max(moment.seconds, -62_135_596_800), 253_402_300_799)
        let days = Int(seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400)
        let rest = Int(seconds) - days * 86_400
        (year, month, day) = CivilTime.date(daysSinceEpoch: days)
        hour = rest / 3600
        minute = rest / 60 % 60
        second = rest % 60
    }

    /// The moment of a civil time.
    var moment: WallTime {
        let days = CivilTime.daysSinceEpoch(year: year, month: month, day: day)
        return WallTime(seconds: Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second))
    }

    // Years are counted from March, so that the leap day is a year's last, and in eras of 400 years, which are all
    // 146,097 days long.
    private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
        let marchYear = month <= 2 ? year - 1 : year
        let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func date(daysSinceEpoch days: Int) -> (Int, Int, Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension WallTime {
    /// The moment as ISO 8601 writes it, in UTC and to the second: `2026-03-01T12:00:00Z`.
    package var isoText: String {
        let time = CivilTime(self)
        func digits(_ value: Int, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let date = "\(digits(time.year, 4))-\(digits(time.month, 2))-\(digits(time.day, 2))"
        return "\(date)T\(digits(time.hour, 2)):\(digits(time.minute, 2)):\(digits(time.second, 2))Z"
    }

    /// Reads what ``isoText`` writes.
    package init?(isoText text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 else { return nil }
        for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")] {
            guard bytes[index] == mark.utf8.first else { return nil }
        }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19)
        else { return nil }
        let time = CivilTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        // What does not come back as it was (the 30th of February, hour 25) is no date.
        guard year > 0, (1...12).contains(month), CivilTime(time.moment) == time else { return nil }
        self = time.moment
    }
}
