/// A moment of civil time, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// Expiry, certificates, provider tokens and the journal speak wall time. Time-outs do not: they are measured on the
/// monotonic clock of an event loop, which no operator can set back.
public struct WallTime: Hashable, Comparable, Sendable {
    /// Milliseconds since the UNIX epoch; negative before it.
    public var milliseconds: Int64

    /// Makes a moment from milliseconds since the UNIX epoch.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Makes a moment from whole seconds since the UNIX epoch, as `apns-expiration` and `iat` carry them.
    ///
    /// Seconds that milliseconds cannot represent (beyond the year 292 million) become the nearest moment that they can.
    public init(seconds: Int64) {
        let (value, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        milliseconds = overflow ? (seconds < 0 ? .min : .max) : value
    }

    /// Whole seconds since the UNIX epoch, rounded down.
    public var seconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    /// Orders moments by time.
    public static func < (left: WallTime, right: WallTime) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// The moment `duration` later; saturates instead of overflowing.
    public static func + (time: WallTime, duration: Duration) -> WallTime {
        let (value, overflow) = time.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
        return WallTime(milliseconds: overflow ? (duration < .zero ? .min : .max) : value)
    }

    /// The moment `duration` earlier; saturates instead of overflowing.
    public static func - (time: WallTime, duration: Duration) -> WallTime {
        time + (.zero - duration)
    }

    /// The time from the right-hand moment to the left-hand one.
    public static func - (later: WallTime, earlier: WallTime) -> Duration {
        let (value, overflow) = later.milliseconds.subtractingReportingOverflow(earlier.milliseconds)
        return .milliseconds(overflow ? (later < earlier ? .min : .max) : value)
    }
}

extension Duration {
    /// The duration in milliseconds, rounded towards zero.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        return scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
    }
}

/// Where the service reads the time; the only way in which any part of it does.
///
/// One clock is made at start and handed to every part, so that a test (or an operator on a test system) moves all of
/// them together: an hour of a provider token or thirty days of storage pass in a millisecond.
package protocol WallClock: Sendable {
    /// The present moment.
    func now() -> WallTime
}
