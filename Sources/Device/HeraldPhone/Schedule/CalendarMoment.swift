import Foundation
import HeraldModel

/// The moment at which a local notification is due once.
///
/// `2026-12-24T18:00` is a time of the device's time zone, whichever that is then. `2026-12-24T18:00Z` and
/// `2026-12-24T18:00+01:00` name the same moment in every zone. A time may have seconds, and they a fraction of one to nine digits
/// (`2026-12-24T18:00:00.500Z`), of which the milliseconds count.
public struct CalendarMoment: Hashable, Sendable, LosslessStringConvertible {
    private let time: LocalTime
    /// The seconds ahead of UTC; nil for a time of the device's time zone.
    private let offset: Int64?
    private let milliseconds: Int64
    /// The moment as ``init(_:)`` reads it.
    public let description: String

    /// Reads a moment; nil if it is not one.
    public init?(_ text: String) {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let date = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard date.count == 3, let year = LocalTime.digits(date[0], 4...4),
            let month = LocalTime.digits(date[1], 2...2),
            let dayOfMonth = LocalTime.digits(date[2], 2...2), (1...12).contains(month)
        else { return nil }
        let day = WallTime.days(year, month, dayOfMonth)
        guard WallTime.civil(day) == (year, month, dayOfMonth) else { return nil }
        let timeOfDay = parts[1].prefix { $0.isNumber || $0 == ":" }
        guard let second = LocalTime.second(ofDay: timeOfDay) else { return nil }
        var rest = parts[1].dropFirst(timeOfDay.count)
        if rest.first == "." {
            let fraction = rest.dropFirst().prefix { $0.isNumber }
            // Only seconds have a fraction.
            guard timeOfDay.count == 8, LocalTime.digits(fraction, 1...9) != nil,
                let read = Int64((fraction + "00").prefix(3))
            else { return nil }
            milliseconds = read
            rest = rest.dropFirst(1 + fraction.count)
        } else {
            milliseconds = 0
        }
        switch rest {
        case "": offset = nil
        case "Z": offset = 0
        case let zone:
            guard let sign = zone.first, sign == "+" || sign == "-", zone.count == 6,
                let ahead = LocalTime.second(ofDay: zone.dropFirst())
            else { return nil }
            offset = sign == "+" ? ahead : -ahead
        }
        time = LocalTime(day: day, second: second)
        description = text
    }

    /// The moment on a device in a time zone.
    func moment(in zone: TimeZone) -> WallTime {
        (offset.map { WallTime(seconds: time.seconds - $0) } ?? time.moment(in: zone)) + .milliseconds(milliseconds)
    }
}
