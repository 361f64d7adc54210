import Synchronization

/// Limits how many operations run at once; it fails instead of waiting.
package final class ConcurrencyLimit: Sendable {
    /// The right to run one operation; it is released once, at the latest when it is deinitialized.
    package final class Permit: Sendable {
        private let limit: ConcurrencyLimit
        private let isReleased = Mutex(false)

        fileprivate init(_ limit: ConcurrencyLimit) {
            self.limit = limit
        }

        /// Makes room for another operation.
        package func release() {
            let isFirst = isReleased.withLock { isReleased in
                defer { isReleased = true }
                return !isReleased
            }
            if isFirst { limit.free.withLock { $0 += 1 } }
        }

        deinit { release() }
    }

    private let free: Mutex<Int>

    package init(_ count: Int) {
        free = Mutex(count)
    }

    /// Takes a permit; nil if all are taken.
    package func take() -> Permit? {
        let isTaken = free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        return isTaken ? Permit(self) : nil
    }
}
