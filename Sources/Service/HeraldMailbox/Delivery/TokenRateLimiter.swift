import HeraldModel

/// Limits notifications of each device token: a burst, then a rate.
///
/// A set-associative table of fixed size: each token has four places, and a new token evicts the least used of the four.
/// Eviction forgives a token; so no token is ever refused because of another.
struct TokenRateLimiter {
    private struct Entry {
        var slot: Slot
        /// Microseconds of wall time.
        var spentUntil: Int64
    }

    private static let ways = 4

    private var entries: [Entry]
    private let mask: Int
    private let limit: RateLimit

    /// - Parameters:
    ///   - burst: The number at once, 1 to 1,000,000.
    ///   - perSecond: The rate after that, up to 1,000,000; 0 for no limit.
    ///   - capacity: The number of tokens in the table; rounded up to a power of two.
    init(burst: Int = 10_000, perSecond: Int = 1000, capacity: Int = 256) {
        let interval = perSecond > 0 ? 1_000_000 / Int64(min(perSecond, 1_000_000)) : 0
        limit = RateLimit(burst: min(burst, 1_000_000), interval: .microseconds(interval))
        var sets = 1
        while sets * Self.ways < capacity { sets *= 2 }
        mask = sets - 1
        let unused = Slot(device: DeviceNumber(0), app: AppNumber(0))
        entries = interval == 0 ? [] : Array(repeating: Entry(slot: unused, spentUntil: .min), count: sets * Self.ways)
    }

    /// Counts one use of a token.
    /// - Returns: false if it exceeds the rate; it does not count then.
    mutating func take(_ slot: Slot, at moment: WallTime) -> Bool {
        let limit = limit
        guard limit.interval > 0 else { return true }
        let now = moment.microseconds
        let hash = (slot.device.value ^ UInt64(slot.app.value)) &* 0x9E37_79B9_7F4A_7C15
        // Not the bits that choose the shard: they are the same for all devices here.
        let first = (Int(truncatingIfNeeded: hash >> 44) & mask) * Self.ways
        return entries.withUnsafeMutableBufferPointer { entries in
            var coldest = first
            for place in first..<first + Self.ways {
                let spentUntil = entries[place].spentUntil
                guard entries[place].slot != slot else {
                    guard limit.wait(spentUntil, at: now) == 0 else { return false }
                    entries[place].spentUntil = limit.used(spentUntil, at: now)
                    return true
                }
                if spentUntil < entries[coldest].spentUntil { coldest = place }
            }
            entries[coldest] = Entry(slot: slot, spentUntil: now &+ limit.interval)
            return true
        }
    }
}
