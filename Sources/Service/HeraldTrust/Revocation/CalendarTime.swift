import HeraldModel

/// A time as ASN.1 encodes it: year, month, day, and time of day in UTC.
struct CalendarTime: Hashable, Sendable {
    var year: Int
    var month: Int
    var day: Int
    var hour: Int
    var minute: Int
    var second: Int

    /// The moment; nil for an invalid date.
    var moment: WallTime? {
        func digits(_ value: Int, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let date = "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
        return WallTime(rfc3339: "\(date)T\(digits(hour, 2)):\(digits(minute, 2)):\(digits(second, 2))Z")
    }
}

extension CalendarTime {
    /// The calendar time of a moment, to the second.
    init(_ moment: WallTime) {
        // From the text form: 2026-11-21T02:34:56.789Z.
        let numbers = moment.rfc3339.split { !$0.isNumber }.compactMap { Int($0) }
        func number(_ index: Int) -> Int { index < numbers.count ? numbers[index] : 0 }
        self.init(
            year: number(0),
            month: number(1),
            day: number(2),
            hour: number(3),
            minute: number(4),
            second: number(5)
        )
    }
}
