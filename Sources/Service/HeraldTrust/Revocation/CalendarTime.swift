import HeraldModel
import SwiftASN1

/// Times of revocation lists (RFC 5280 §5.1.2.4).
extension GeneralizedTime {
    /// The time of a moment, to the second.
    init(_ moment: WallTime) throws {
        // From the text form: 2026-11-21T02:34:56.789Z.
        let numbers = moment.rfc3339.split { !$0.isNumber }.compactMap { Int($0) }
        func number(_ index: Int) -> Int { index < numbers.count ? numbers[index] : 0 }
        try self.init(
            year: number(0),
            month: number(1),
            day: number(2),
            hours: number(3),
            minutes: number(4),
            seconds: number(5),
            fractionalSeconds: 0
        )
    }

    /// The same time as one whose year is encoded with two digits.
    init(_ time: UTCTime) throws {
        try self.init(
            year: time.year,
            month: time.month,
            day: time.day,
            hours: time.hours,
            minutes: time.minutes,
            seconds: time.seconds,
            fractionalSeconds: 0
        )
    }

    /// The moment, without its fraction of a second; nil for an invalid date.
    var moment: WallTime? {
        func digits(_ value: Int, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let date = "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
        return WallTime(rfc3339: "\(date)T\(digits(hours, 2)):\(digits(minutes, 2)):\(digits(seconds, 2))Z")
    }
}
