import Foundation
import HeraldModel

/// A date and time of day as a clock on the wall shows it, without a time zone.
struct LocalTime: Hashable, Sendable {
    static let daySeconds: Int64 = 86_400

    /// The seconds since 1970-01-01 00:00 of the same clock.
    var seconds: Int64

    /// Creates the time of day `second` on the day that is `day` days after 1970-01-01.
    init(day: Int64, second: Int64) {
        seconds = day * Self.daySeconds + second
    }

    /// The time that the clock shows at a moment.
    init(_ moment: WallTime, in zone: TimeZone) {
        seconds = moment.seconds + Self.offset(of: zone, at: moment.seconds)
    }

    /// The days since 1970-01-01.
    var day: Int64 {
        let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: Self.daySeconds)
        return remainder < 0 ? quotient - 1 : quotient
    }

    /// The moment at which the clock shows this time.
    ///
    /// The first of two if the clock is set back over it. If the clock is set ahead over it, the moment of that change.
    func moment(in zone: TimeZone) -> WallTime {
        // Offsets are within a day, and between two changes of a zone are more than two days.
        let before = Self.offset(of: zone, at: seconds - Self.daySeconds)
        let after = Self.offset(of: zone, at: seconds + Self.daySeconds)
        for offset in [before, after] where Self.offset(of: zone, at: seconds - offset) == offset {
            return WallTime(seconds: seconds - offset)
        }
        // It does not exist: the clock is set ahead between these two moments.
        var (early, late) = (seconds - after, seconds - before)
        while late - early > 1 {
            let middle = early + (late - early) / 2
            if Self.offset(of: zone, at: middle) == before { early = middle } else { late = middle }
        }
        return WallTime(seconds: late)
    }

    /// The seconds by which a zone is ahead of UTC at a moment in UNIX seconds.
    private static func offset(of zone: TimeZone, at seconds: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    }
}

extension LocalTime: CustomStringConvertible {
    /// The text that ``CalendarMoment`` reads: `2026-12-24T18:00:30`.
    var description: String {
        // The clock's own seconds, written without the zone.
        String(WallTime(seconds: seconds).rfc3339.prefix(19))
    }
}

extension LocalTime {
    /// Reads `07:00` or `07:00:30` as the seconds of a day; nil for every other text.
    static func second(ofDay text: some StringProtocol) -> Int64? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { digits($0, 2...2) }
        guard (2...3).contains(parts.count), let hour = parts[0], let minute = parts[1],
            let second = parts.count == 3 ? parts[2] : 0, hour < 24, minute < 60, second < 60
        else { return nil }
        return (hour * 60 + minute) * 60 + second
    }

    /// Reads a number with that many digits; nil for every other text.
    static func digits(_ text: some StringProtocol, _ count: ClosedRange<Int>) -> Int64? {
        guard count.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }
}
