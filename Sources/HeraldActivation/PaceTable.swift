import HeraldModel

/// How often each of many may do a thing: so many times at once, and again after an interval each.
///
/// An entry is one moment, when all that was used will have come back ("generic cell rate algorithm", ITU-T I.371). The table
/// holds a fixed number; whoever has all of it back is forgotten first.
struct PaceTable<Key: Hashable & Sendable>: Sendable {
    /// Milliseconds in which one comes back.
    private let interval: Int64
    /// How far a moment may lie ahead before another use is one too many.
    private let tolerance: Int64
    private let capacity: Int
    private var spentUntil: [Key: Int64] = [:]

    init(burst: Int, interval: Duration, capacity: Int) {
        self.interval = max(1, interval.wholeMilliseconds)
        tolerance = Int64(max(1, burst) - 1) * self.interval
        self.capacity = max(1, capacity)
    }

    /// How long somebody has to wait; nil if it is their turn.
    func wait(_ key: Key, at now: WallTime) -> Duration? {
        let ahead = ahead(key, at: now)
        return ahead > tolerance ? .milliseconds(ahead - tolerance) : nil
    }

    /// Whether something is still on somebody's account.
    func remembers(_ key: Key, at now: WallTime) -> Bool {
        ahead(key, at: now) > 0
    }

    /// Whether somebody new would find no place.
    func isFull(at now: WallTime) -> Bool {
        spentUntil.count >= capacity && !spentUntil.values.contains { isOver($0, at: now) }
    }

    /// Counts one use.
    ///
    /// Where the table is full, that of somebody new is not remembered.
    mutating func take(_ key: Key, at now: WallTime) {
        if spentUntil[key] == nil, spentUntil.count >= capacity {
            spentUntil = spentUntil.filter { !isOver($0.value, at: now) }
            guard spentUntil.count < capacity else { return }
        }
        spentUntil[key] = now.milliseconds + ahead(key, at: now) + interval
    }

    private func ahead(_ key: Key, at now: WallTime) -> Int64 {
        guard let until = spentUntil[key], !isOver(until, at: now) else { return 0 }
        return until - now.milliseconds
    }

    /// Also for a moment further ahead than it can be: the clock was set back, and what was used before is forgiven.
    private func isOver(_ until: Int64, at now: WallTime) -> Bool {
        until <= now.milliseconds || until - now.milliseconds > tolerance + interval
    }
}
