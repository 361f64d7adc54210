package import HeraldModel
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The clock of the service: the system's clock, plus an offset that an operator of a test system sets.
///
/// Its ``ClockGuard`` judges the system's clock alone: moving the offset is a wish, and no jump.
package final class ServiceClock: WallClock {
    private let offset: Mutex<Duration>
    private let source: @Sendable () -> ClockGuard.Reading
    private let clockGuard: Mutex<ClockGuard>
    /// Whether ``advance(by:)`` is allowed.
    package let isAdjustable: Bool

    /// `offset` is how far ahead of the system's clock it starts; `source` reads the machine's clocks for the guard.
    package init(
        offset: Duration = .zero,
        isAdjustable: Bool = false,
        source: @escaping @Sendable () -> ClockGuard.Reading = ServiceClock.machineReading
    ) {
        self.offset = Mutex(offset)
        self.isAdjustable = isAdjustable
        self.source = source
        clockGuard = Mutex(ClockGuard(now: source()))
    }

    package func now() -> WallTime {
        let system = ServiceClock.systemTime
        return offset.withLock { system + $0 }
    }

    package func certainTime() -> WallTime {
        let certain = observed { $0.certainTime }
        return offset.withLock { certain + $0 }
    }

    /// Moves the clock; back with a negative duration.
    /// - Returns: false if the clock is not adjustable.
    package func advance(by duration: Duration) -> Bool {
        guard isAdjustable else { return false }
        offset.withLock { $0 += duration }
        return true
    }

    /// How far it is ahead of the system's clock; negative if it is behind.
    package var shift: Duration { offset.withLock { $0 } }

    // MARK: - Jumps of the system's clock

    /// Continues from the certain time of the last run; once, before anything expires.
    package func resume(_ record: ClockGuard.Record?) {
        let now = source()
        clockGuard.withLock { $0 = ClockGuard(record, now: now) }
    }

    package var guardState: ClockGuard.State { observed { $0.state } }
    package var guardRecord: ClockGuard.Record? { observed { $0.record } }
    package var guardEnding: ClockGuard.Ending? { clockGuard.withLock { $0.ending } }

    /// Accepts the system's clock as it is.
    package func accept() {
        clockGuard.withLock { $0.accept(source()) }
    }

    private func observed<Value: Sendable>(_ read: (ClockGuard) -> Value) -> Value {
        clockGuard.withLock { clockGuard in
            clockGuard.observe(source())
            return read(clockGuard)
        }
    }

    private static var systemTime: WallTime {
        let time = time(of: CLOCK_REALTIME)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// Reads the machine's clocks.
    ///
    /// The time of a suspended machine counts, so that a suspension is not a jump.
    @Sendable package static func machineReading() -> ClockGuard.Reading {
        #if os(Linux)
        let uptime = time(of: CLOCK_BOOTTIME)
        #else
        let uptime = time(of: CLOCK_MONOTONIC)
        #endif
        return ClockGuard.Reading(
            wall: systemTime,
            uptime: .seconds(Int64(uptime.tv_sec)) + .nanoseconds(Int64(uptime.tv_nsec)),
            boot: boot
        )
    }

    private static func time(of clock: clockid_t) -> timespec {
        var time = timespec()
        clock_gettime(clock, &time)
        return time
    }

    /// A number made from the kernel's identifier of this boot; 0 if the system has none.
    private static let boot: Int64 = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var id = [UInt8](repeating: 0, count: 36)
        guard read(descriptor, &id, id.count) == id.count else { return 0 }
        // FNV-1a.
        let hash = id.reduce(14_695_981_039_346_656_037 as UInt64) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        return Int64(hash >> 1)
    }()
}
