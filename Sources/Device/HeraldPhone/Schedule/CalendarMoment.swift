import Foundation
import HeraldModel

/// The moment at which a local notification is due once.
///
/// `2026-12-24T18:00` is a time of the device's time zone, whichever that is then. `2026-12-24T18:00Z` and
/// `2026-12-24T18:00+01:00` name the same moment in every zone. A time may have seconds, and they a fraction of one to nine digits
/// (`2026-12-24T18:00:00.500Z`), of which the milliseconds count.
public struct CalendarMoment: Hashable, Sendable, LosslessStringConvertible {
    /// The moment; of a time of the device's time zone, the one at which a clock in UTC shows it.
    private let time: WallTime
    /// Whether it is a time of the device's time zone.
    private let isLocal: Bool
    /// The moment as ``init(_:)`` reads it.
    public let description: String

    /// Reads a moment; nil if it is not one.
    public init?(_ text: String) {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let clock = parts[1].prefix { $0.isNumber || $0 == ":" || $0 == "." }
        let zone = parts[1].dropFirst(clock.count)
        // RFC 3339 has seconds and a zone.
        let seconds = clock.utf8.count == 5 ? ":00" : ""
        let whole = "\(parts[0])T\(clock)\(seconds)\(zone.isEmpty ? "Z" : zone)"
        guard zone != "z", let time = WallTime(rfc3339: whole) else { return nil }
        self.time = time
        isLocal = zone.isEmpty
        description = text
    }

    /// The moment on a device in a time zone.
    func moment(in zone: TimeZone) -> WallTime {
        guard isLocal else { return time }
        // A time of day has its seconds from the zone, and keeps its milliseconds.
        return LocalTime(time, in: .gmt).moment(in: zone) + (time - WallTime(seconds: time.seconds))
    }
}
