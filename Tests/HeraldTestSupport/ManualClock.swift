package import HeraldModel
import Synchronization

/// A clock that stands still until a test moves it.
package final class ManualClock: WallClock {
    private let time: Mutex<WallTime>

    package init(_ time: WallTime = WallTime(seconds: 1_800_000_000)) {
        self.time = Mutex(time)
    }

    package func now() -> WallTime {
        time.withLock { $0 }
    }

    package func advance(by duration: Duration) {
        time.withLock { $0 = $0 + duration }
    }

    package func set(_ time: WallTime) {
        self.time.withLock { $0 = time }
    }
}
