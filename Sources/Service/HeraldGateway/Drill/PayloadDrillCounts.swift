import HeraldModel

/// Counts the requests that the drills of payloads have hit: a retry has the same payload and device token.
struct PayloadDrillCounts {
    private struct Key: Hashable {
        let slot: Slot
        let payload: Int
    }

    private var counts: [Key: Int] = [:]
    /// The keys of ``counts``, the oldest first.
    private var order: [Key] = []

    /// Takes one of the first requests with a payload for a device token.
    /// - Returns: false if that many have been taken.
    mutating func take(_ slot: Slot, _ payload: [UInt8], first: Int) -> Bool {
        let key = Key(slot: slot, payload: payload.hashValue)
        guard let taken = counts[key] else {
            if order.count >= DrillLimits.countedPayloads { counts[order.removeFirst()] = nil }
            order.append(key)
            counts[key] = 1
            return true
        }
        guard taken < first else { return false }
        counts[key] = taken + 1
        return true
    }
}
