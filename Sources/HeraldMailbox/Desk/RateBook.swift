import HeraldModel

/// How often each device token is used: so many notifications at once, and so many a second after that.
///
/// It remembers the tokens that are used most, in a table whose size never changes: a place is looked for in a set of
/// four, and the coldest of the four gives way. One that is used often is the hottest of its set and stays; one that is
/// forgotten has lost at most what little it had used. So no token is ever refused for what another one did.
///
/// An entry is one moment: when all that was used will have come back ("generic cell rate algorithm", ITU-T I.371).
struct RateBook {
    private struct Entry {
        var slot: Slot
        /// Microseconds of wall time.
        var spentUntil: Int64
    }

    /// The limit itself, without the memory.
    private struct Pace {
        /// Microseconds in which one more comes back; 0 if nothing is limited.
        let interval: Int64
        /// How far `spentUntil` may lie ahead before another is too much.
        let tolerance: Int64

        func take(_ entry: inout Entry, _ now: Int64) -> Bool {
            var spentUntil = max(entry.spentUntil, now)
            // Further ahead than a full burst can be: the clock was set back, and what was used before is forgiven.
            // Event loops read the clock at moments of their own, hence the second.
            if spentUntil &- now > tolerance &+ interval &+ 1_000_000 { spentUntil = now }
            guard spentUntil &- now <= tolerance else { return false }
            entry.spentUntil = spentUntil &+ interval
            return true
        }
    }

    private static let ways = 4

    private var entries: [Entry]
    private let mask: Int
    private let pace: Pace

    /// - Parameters:
    ///   - burst: How many at once; 1 to 1,000,000.
    ///   - perSecond: How many a second after that, up to 1,000,000; 0 for no limit.
    ///   - capacity: How many tokens are remembered; rounded up to a power of two.
    init(burst: Int = 10_000, perSecond: Int = 1000, capacity: Int = 256) {
        let interval = perSecond > 0 ? max(1, 1_000_000 / Int64(min(perSecond, 1_000_000))) : 0
        pace = Pace(interval: interval, tolerance: (Int64(min(max(1, burst), 1_000_000)) - 1) * interval)
        var sets = 1
        while sets * Self.ways < capacity { sets *= 2 }
        mask = sets - 1
        let nobody = Slot(device: DeviceNumber(0), app: AppNumber(0))
        entries = interval == 0 ? [] : Array(repeating: Entry(slot: nobody, spentUntil: .min), count: sets * Self.ways)
    }

    /// Counts one use of a token.
    /// - Returns: false if it is one too many; it is not counted then.
    mutating func take(_ slot: Slot, at moment: WallTime) -> Bool {
        let pace = pace
        guard pace.interval > 0 else { return true }
        let now = moment.milliseconds &* 1000
        let hash = (slot.device.value ^ UInt64(slot.app.value)) &* 0x9E37_79B9_7F4A_7C15
        // Bits that do not choose the desk: those are the same for all devices here.
        let first = (Int(truncatingIfNeeded: hash >> 44) & mask) * Self.ways
        return entries.withUnsafeMutableBufferPointer { entries in
            var coldest = first
            for place in first..<first + Self.ways {
                if entries[place].slot == slot { return pace.take(&entries[place], now) }
                if entries[place].spentUntil < entries[coldest].spentUntil { coldest = place }
            }
            entries[coldest] = Entry(slot: slot, spentUntil: now &+ pace.interval)
            return true
        }
    }
}
