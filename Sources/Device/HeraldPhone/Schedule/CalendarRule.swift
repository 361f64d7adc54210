import Foundation
import HeraldModel

/// The moments at which a repeating local notification is due: an interval, or a pattern of the device's calendar.
///
/// | text | due |
/// |---|---|
/// | `15m`, `2h`, `1d` | each time that the interval has passed; at least one minute |
/// | `day 07:00` | every day |
/// | `monday 07:00` | every Monday |
/// | `month 1 07:00` | on the first of each month; months without that day are skipped |
/// | `year 12-24 18:00` | on that date; `02-29` only in leap years |
///
/// A time of day may have seconds: `07:00:30`. It is a time of the device's time zone. If the clock is set back over it, the
/// first of the two counts; if the clock is set ahead over it, the moment of that change.
public struct CalendarRule: Hashable, Sendable, LosslessStringConvertible {
    /// The shortest interval: a shorter one would only replace its own notification on the screen.
    public static let shortestInterval = Duration.seconds(60)
    /// The longest time between two moments of a pattern, in days: from one 29 February to the next, over the year 2100.
    private static let longestPause: Int64 = 8 * 366

    private enum Pattern: Hashable, Sendable {
        case interval(Duration)
        case day
        /// A day of the week; 0 is Sunday.
        case week(Int64)
        case month(day: Int64)
        case year(month: Int64, day: Int64)
    }

    private static let weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

    private let pattern: Pattern
    /// The seconds of the day.
    private let second: Int64
    /// The rule as ``init(_:)`` reads it.
    public let description: String

    /// Reads a rule; nil if it is not one.
    public init?(_ text: String) {
        let words = text.lowercased().split(separator: " ")
        if words.count == 1, let interval = DurationText.read(words[0]) {
            guard interval >= Self.shortestInterval else { return nil }
            self.init(.interval(interval), 0, DurationText.write(interval))
            return
        }
        guard words.count >= 2, let second = LocalTime.second(ofDay: words[words.count - 1]) else { return nil }
        let description = words.joined(separator: " ")
        switch words[0] {
        case "day" where words.count == 2: self.init(.day, second, description)
        case "month" where words.count == 3:
            guard let day = LocalTime.digits(words[1], 1...2), (1...31).contains(day) else { return nil }
            self.init(.month(day: day), second, description)
        case "year" where words.count == 3:
            let date = words[1].split(separator: "-", omittingEmptySubsequences: false)
            guard date.count == 2, let month = LocalTime.digits(date[0], 1...2),
                let day = LocalTime.digits(date[1], 1...2), (1...12).contains(month),
                // 2000 is a leap year.
                WallTime.civil(WallTime.days(2000, month, day)) == (2000, month, day)
            else { return nil }
            self.init(.year(month: month, day: day), second, description)
        default:
            guard words.count == 2, let weekday = Self.weekdays.firstIndex(of: String(words[0])) else { return nil }
            self.init(.week(Int64(weekday)), second, description)
        }
    }

    private init(_ pattern: Pattern, _ second: Int64, _ description: String) {
        self.pattern = pattern
        self.second = second
        self.description = description
    }

    /// The interval; nil for a pattern of the calendar.
    var interval: Duration? {
        if case .interval(let interval) = pattern { interval } else { nil }
    }

    /// The first moment of the rule after another moment; for an interval, the end of one that begins then.
    func next(after moment: WallTime, in zone: TimeZone) -> WallTime? {
        if let interval { return moment + interval }
        let today = LocalTime(moment, in: zone).day
        // A time of yesterday can come today, if the clock is set ahead at midnight.
        return ((today - 1)...(today + Self.longestPause)).lazy.filter(contains)
            .map { LocalTime(day: $0, second: second).moment(in: zone) }
            .first { $0 > moment }
    }

    /// Whether the pattern contains the day that is `day` days after 1970-01-01, which was a Thursday.
    private func contains(_ day: Int64) -> Bool {
        switch pattern {
        case .interval: return false
        case .day: return true
        case .week(let weekday): return ((day + 4) % 7 + 7) % 7 == weekday
        case .month(let wanted): return WallTime.civil(day).day == wanted
        case .year(let month, let wanted):
            let date = WallTime.civil(day)
            return date.month == month && date.day == wanted
        }
    }
}
