package import HeraldModel

/// Rate limiter by key: a burst, then one use each interval.
///
/// An entry is the time at which its key has its full burst again. The table has a fixed capacity and drops such keys first.
package struct KeyedRateLimiter<Key: Hashable & Sendable>: Sendable {
    private let limit: RateLimit
    private let capacity: Int
    private var spentUntil: [Key: Int64] = [:]

    package init(burst: Int, interval: Duration, capacity: Int) {
        limit = RateLimit(burst: burst, interval: max(.milliseconds(1), interval))
        self.capacity = max(1, capacity)
    }

    /// Time until the next use; nil if now.
    package func wait(_ key: Key, at now: WallTime) -> Duration? {
        let wait = limit.wait(spentUntil[key] ?? .min, at: now.microseconds)
        return wait > 0 ? .microseconds(wait) : nil
    }

    /// Whether a key has less than its full burst.
    package func remembers(_ key: Key, at now: WallTime) -> Bool {
        spentUntil[key].map { !isOver($0, at: now) } ?? false
    }

    /// Whether there is no room for a new key.
    package func isFull(at now: WallTime) -> Bool {
        spentUntil.count >= capacity && !spentUntil.values.contains { isOver($0, at: now) }
    }

    /// Counts one use; a full table ignores new keys.
    package mutating func take(_ key: Key, at now: WallTime) {
        if spentUntil[key] == nil, spentUntil.count >= capacity {
            spentUntil = spentUntil.filter { !isOver($0.value, at: now) }
            guard spentUntil.count < capacity else { return }
        }
        spentUntil[key] = limit.used(spentUntil[key] ?? .min, at: now.microseconds)
    }

    private func isOver(_ until: Int64, at now: WallTime) -> Bool {
        limit.wholeBurst(until, at: now.microseconds) == now.microseconds
    }
}
