/// Rate limit with a burst: the generic cell rate algorithm (ITU-T I.371), without clock and without memory.
///
/// Times are microseconds of the caller's clock. For each thing that it limits, the caller keeps one number: the time from
/// which the whole burst is available again; `.min` at first.
package struct RateLimit: Hashable, Sendable {
    /// Microseconds in which one more use becomes available; 0 for no limit.
    package let interval: Int64
    /// The largest lead of the kept time with which one more use is allowed.
    @usableFromInline let tolerance: Int64

    /// - Parameters:
    ///   - burst: The number of uses at once, at least 1.
    ///   - interval: The time in which one more becomes available; zero for no limit.
    package init(burst: Int, interval: Duration) {
        self.interval = Int64(min(max(0, interval / .microseconds(1)), 1e15))
        tolerance = min(Int64(max(1, burst)) - 1, 4_000_000_000_000_000_000 / max(1, self.interval)) * self.interval
    }

    /// The time from which the whole burst is available again, not before `now`.
    ///
    /// A time beyond the possible maximum is forgiven, because the clock was set back. Threads read the clock at different
    /// moments, hence the second.
    @inlinable
    package func wholeBurst(_ kept: Int64, at now: Int64) -> Int64 {
        let whole = max(kept, now)
        return whole &- now > tolerance &+ interval &+ 1_000_000 ? now : whole
    }

    /// Microseconds until the next use; 0 for now.
    @inlinable
    package func wait(_ kept: Int64, at now: Int64) -> Int64 {
        max(0, wholeBurst(kept, at: now) &- now &- tolerance)
    }

    /// The time to keep after one more use; a use past the limit counts up to the maximum only.
    @inlinable
    package func used(_ kept: Int64, at now: Int64) -> Int64 {
        min(wholeBurst(kept, at: now), now &+ tolerance) &+ interval
    }
}

extension WallTime {
    /// Microseconds since the UNIX epoch, for ``RateLimit``.
    package var microseconds: Int64 { milliseconds &* 1000 }
}
