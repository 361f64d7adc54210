package import HeraldModel

/// Rate limiter by key: a burst, then one use each interval.
///
/// An entry is the time at which its key has its full burst again. The table has a fixed capacity and drops such keys first.
/// A full table refuses new keys: it forgets none, so that a flood of keys frees nobody.
package struct KeyedRateLimiter<Key: Hashable & Sendable>: Sendable {
    private let limit: RateLimit
    private let capacity: Int
    private var spentUntil: [Key: Int64] = [:]
    /// When a full table was last searched for entries that are over, and the time until which it then had none.
    ///
    /// A flood of new keys does not search it again and again.
    private var searched = (at: Int64.max, until: Int64.min)

    package init(burst: Int, interval: Duration, capacity: Int) {
        limit = RateLimit(burst: burst, interval: max(.milliseconds(1), interval))
        self.capacity = max(1, capacity)
    }

    /// Time until the next use; nil if now.
    ///
    /// A new key waits for room in a full table.
    package mutating func wait(_ key: Key, at now: WallTime) -> Duration? {
        let wait = spentUntil[key].map { limit.wait($0, at: now.microseconds) } ?? waitForRoom(at: now)
        return wait > 0 ? .microseconds(wait) : nil
    }

    /// Whether a key has less than its full burst.
    package func remembers(_ key: Key, at now: WallTime) -> Bool {
        spentUntil[key].map { limit.wholeBurst($0, at: now.microseconds) != now.microseconds } ?? false
    }

    /// Counts one use, unless the key waits for room.
    package mutating func take(_ key: Key, at now: WallTime) {
        guard spentUntil[key] != nil || waitForRoom(at: now) == 0 else { return }
        spentUntil[key] = limit.used(spentUntil[key] ?? .min, at: now.microseconds)
    }

    /// Microseconds until there is room for a new key; 0 for now.
    private mutating func waitForRoom(at now: WallTime) -> Int64 {
        guard spentUntil.count >= capacity else { return 0 }
        let now = now.microseconds
        // A clock that was set back ends entries too.
        if searched.until <= now || now < searched.at {
            spentUntil = spentUntil.filter { limit.wholeBurst($0.value, at: now) != now }
            searched = (now, spentUntil.values.min() ?? .min)
        }
        return spentUntil.count < capacity ? 0 : max(1, searched.until &- now)
    }
}
