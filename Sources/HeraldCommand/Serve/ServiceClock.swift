import Foundation
import HeraldModel
import Synchronization

/// The system's clock.
struct SystemClock: WallClock {
    func now() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// The one clock of a service: the system's, or one that tests and trials move.
final class ServiceClock: WallClock {
    /// Which clock a service runs by, as `--clock` says it.
    enum Setting: Hashable, Sendable {
        /// The system's; cannot be moved.
        case system
        /// The system's and so much more; can be moved.
        case shifted(by: Duration)
        /// Stands still; can be moved.
        case standing(at: WallTime)

        /// Reads `system`, `adjustable` (the same as `+0s`), `+1h`, `-7d`, or a moment: `2026-11-21T00:00:00Z` or UNIX
        /// seconds.
        /// - Returns: nil for every other text.
        init?(_ text: String) {
            switch text {
            case "system":
                self = .system
            case "adjustable":
                self = .shifted(by: .zero)
            case _ where text.hasPrefix("+"):
                guard let duration = DurationText.read(text.dropFirst()) else { return nil }
                self = .shifted(by: duration)
            case _ where text.hasPrefix("-"):
                guard let duration = DurationText.read(text.dropFirst()) else { return nil }
                self = .shifted(by: .zero - duration)
            default:
                if let moment = WallTime(rfc3339: text) {
                    self = .standing(at: moment)
                } else if text.allSatisfy({ $0.isASCII && $0.isNumber }), let seconds = Int64(text) {
                    self = .standing(at: WallTime(seconds: seconds))
                } else {
                    return nil
                }
            }
        }
    }

    let isAdjustable: Bool
    let isStanding: Bool
    /// Milliseconds: since the epoch for a clock that stands, else what is added to the system's time.
    private let adjustment: Atomic<Int64>
    private let system = SystemClock()

    init(_ setting: Setting) {
        switch setting {
        case .system:
            (isAdjustable, isStanding) = (false, false)
            adjustment = Atomic(0)
        case .shifted(let duration):
            (isAdjustable, isStanding) = (true, false)
            adjustment = Atomic(duration.wholeMilliseconds)
        case .standing(let moment):
            (isAdjustable, isStanding) = (true, true)
            adjustment = Atomic(moment.milliseconds)
        }
    }

    func now() -> WallTime {
        let adjustment = adjustment.load(ordering: .relaxed)
        return isStanding
            ? WallTime(milliseconds: adjustment)
            : system.now() + .milliseconds(adjustment)
    }

    /// Moves the clock forward, or back by a negative duration.
    /// - Returns: false, and nothing happens, if the clock is the system's.
    func move(by duration: Duration) -> Bool {
        guard isAdjustable else { return false }
        var held = adjustment.load(ordering: .relaxed)
        while true {
            let moved = (WallTime(milliseconds: held) + duration).milliseconds
            let (exchanged, original) = adjustment.compareExchange(
                expected: held,
                desired: moved,
                ordering: .relaxed
            )
            if exchanged { return true }
            held = original
        }
    }
}
