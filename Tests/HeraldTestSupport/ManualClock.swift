package import HeraldModel
import Synchronization

/// A clock that stands still until a test moves it.
package final class ManualClock: WallClock {
    private let moment: Mutex<WallTime>
    private let certain = Mutex<WallTime?>(nil)

    /// - Parameter moment: Where it begins; by default the 1st of March 2026, noon in UTC.
    package init(_ moment: WallTime = WallTime(seconds: 1_772_366_400)) {
        self.moment = Mutex(moment)
    }

    package func now() -> WallTime {
        moment.withLock { $0 }
    }

    package func certainTime() -> WallTime {
        let now = now()
        return certain.withLock { min($0 ?? now, now) }
    }

    /// Holds the certain time at a moment, as after a jump; nil lets it follow the clock again.
    package func setCertain(_ moment: WallTime?) {
        certain.withLock { $0 = moment }
    }

    package func advance(by duration: Duration) {
        moment.withLock { $0 = $0 + duration }
    }

    package func set(_ moment: WallTime) {
        self.moment.withLock { $0 = moment }
    }
}
