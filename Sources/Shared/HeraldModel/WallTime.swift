/// A moment of civil time, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// Expiry, certificates, provider tokens and the journal use wall time. Time-outs use the monotonic clock of an event
/// loop, which nobody can set back.
public struct WallTime: Hashable, Comparable, Sendable {
    /// Milliseconds since the UNIX epoch; negative before it.
    public var milliseconds: Int64

    /// Makes a moment from milliseconds since the UNIX epoch.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Makes a moment from whole seconds since the UNIX epoch, as `apns-expiration` and `iat` carry them.
    ///
    /// Saturates beyond the year 292 million.
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

/// The clock of the service: no part reads the time in another way.
///
/// Every part gets the same clock, so that a test, or an operator of a test system, moves all of them together.
package protocol WallClock: Sendable {
    func now() -> WallTime

    /// The moment up to which expiry is certain: the present one, or an earlier one after a jump of the clock.
    ///
    /// Nothing that expires later is deleted.
    func certainTime() -> WallTime
}

extension WallClock {
    package func certainTime() -> WallTime { now() }
}
