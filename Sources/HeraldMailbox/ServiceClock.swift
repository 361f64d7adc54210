package import HeraldModel
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The clock of the whole service: the system's, moved by an offset that only an operator of a test system sets.
package final class ServiceClock: WallClock {
    private let offset: Mutex<Duration>
    /// Whether ``advance(by:)`` is allowed on this service.
    package let isAdjustable: Bool

    /// - Parameters:
    ///   - offset: How far ahead of the system's clock it starts.
    ///   - isAdjustable: Whether it may be moved later.
    package init(offset: Duration = .zero, isAdjustable: Bool = false) {
        self.offset = Mutex(offset)
        self.isAdjustable = isAdjustable
    }

    package func now() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let system = WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
        return offset.withLock { system + $0 }
    }

    /// Moves the clock; back with a negative duration.
    /// - Returns: false if this service's clock is not to be moved.
    package func advance(by duration: Duration) -> Bool {
        guard isAdjustable else { return false }
        offset.withLock { $0 += duration }
        return true
    }
}
