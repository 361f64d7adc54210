/// Requests that wait for an answer, each in a slot, with their deadlines.
///
/// A token names a slot and how often it has been used: an answer to an earlier request of the slot finds nothing. A ring of
/// buckets keeps the deadlines, and a request that is answered leaves its bucket at once. So the table never holds more than
/// its slots, however fast requests come and go.
struct OpenRequests<Request> {
    /// Precision of deadlines: they pass at most this much late, in nanoseconds.
    static var tick: UInt64 { 20_000_000 }
    private static var bucketCount: Int { 256 }

    private struct Slot {
        var uses: UInt32 = 0
        var request: Request?
        /// Nanoseconds of the caller's clock.
        var deadline: UInt64 = 0
        /// Number of the write that carries the request.
        var batch: UInt64 = 0
        var bucket = 0
        /// Neighbours in the bucket, or the next free slot; -1: none.
        var next = -1
        var previous = -1
    }

    private let limit: Int
    private var slots: [Slot] = []
    private var free = -1
    private var heads: [Int]
    /// The next tick that ``expire(at:)`` looks at.
    private var nextTick: UInt64 = 0
    private(set) var count = 0

    init(limit: Int) {
        self.limit = min(limit, Int(Int32.max))
        heads = Array(repeating: -1, count: Self.bucketCount)
    }

    /// Adds a request.
    /// - Returns: Its token; nil if all slots are taken.
    mutating func insert(_ request: Request, batch: UInt64, now: UInt64, deadline: UInt64) -> UInt64? {
        let place: Int
        if free >= 0 {
            place = free
            free = slots[place].next
        } else {
            guard slots.count < limit else { return nil }
            place = slots.count
            slots.append(Slot())
        }
        if count == 0 { nextTick = now / Self.tick }
        count += 1
        slots[place].request = request
        slots[place].deadline = deadline
        slots[place].batch = batch
        link(place)
        return UInt64(slots[place].uses) << 32 | UInt64(place)
    }

    /// The request of a token, which stays; nil if it has ended.
    func request(_ token: UInt64) -> Request? {
        place(of: token).flatMap { slots[$0].request }
    }

    /// Removes the request of a token; nil if it has ended.
    mutating func remove(_ token: UInt64) -> Request? {
        place(of: token).flatMap { remove(at: $0) }
    }

    /// Removes the requests whose deadline has passed.
    mutating func expire(at now: UInt64) -> [Request] {
        var expired: [Request] = []
        let last = now / Self.tick
        guard count > 0, last >= nextTick else { return [] }
        // After a long pause one round looks at every bucket.
        let ticks = min(last - nextTick + 1, UInt64(Self.bucketCount))
        for tick in (last + 1 - ticks)...last {
            var place = heads[Int(tick % UInt64(Self.bucketCount))]
            while place >= 0 {
                let next = slots[place].next
                // A later round, or the rest of this tick.
                if slots[place].deadline <= now, let request = remove(at: place) { expired.append(request) }
                place = next
            }
        }
        // The present tick is not over.
        nextTick = last
        return expired
    }

    /// Removes all requests that are in a write before `batch`, or all others.
    mutating func removeAll(before batch: UInt64) -> [Request] {
        slots.indices.compactMap { slots[$0].request != nil && slots[$0].batch < batch ? remove(at: $0) : nil }
    }

    mutating func removeAll() -> [Request] {
        slots.indices.compactMap { slots[$0].request != nil ? remove(at: $0) : nil }
    }

    private func place(of token: UInt64) -> Int? {
        let place = Int(token & 0xFFFF_FFFF)
        guard place < slots.count, slots[place].request != nil, UInt64(slots[place].uses) == token >> 32 else {
            return nil
        }
        return place
    }

    private mutating func remove(at place: Int) -> Request? {
        guard let request = slots[place].request else { return nil }
        unlink(place)
        slots[place].request = nil
        slots[place].uses &+= 1
        slots[place].next = free
        free = place
        count -= 1
        return request
    }

    private mutating func link(_ place: Int) {
        let tick = max(slots[place].deadline / Self.tick, nextTick)
        let bucket = Int(tick % UInt64(Self.bucketCount))
        let head = heads[bucket]
        slots[place].bucket = bucket
        slots[place].next = head
        slots[place].previous = -1
        if head >= 0 { slots[head].previous = place }
        heads[bucket] = place
    }

    private mutating func unlink(_ place: Int) {
        let (previous, next) = (slots[place].previous, slots[place].next)
        if previous >= 0 {
            slots[previous].next = next
        } else {
            heads[slots[place].bucket] = next
        }
        if next >= 0 { slots[next].previous = previous }
    }
}
