/// The requests that a connection has in hand; as many slots as it has ever needed at once, up to a limit.
struct RequestTable {
    private(set) var slots: [RequestSlot] = []
    private var free: [Int] = []
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    /// How many requests are in hand.
    var count: Int { slots.count - free.count }

    /// A slot for a new request; nil if the connection has too many in hand.
    mutating func take() -> RequestSlot? {
        if let index = free.popLast() { return slots[index] }
        guard slots.count < limit else { return nil }
        let slot = RequestSlot(index: slots.count)
        slots.append(slot)
        return slot
    }

    /// Takes a slot back.
    mutating func giveBack(_ slot: RequestSlot) {
        guard slot.phase != .free else { return }
        slot.close()
        free.append(slot.index)
    }

    /// The request of that number, if it is still in hand.
    func request(_ number: UInt64) -> RequestSlot? {
        let index = Int(UInt32(truncatingIfNeeded: number))
        guard index < slots.count else { return nil }
        let slot = slots[index]
        return slot.phase != .free && slot.number == number ? slot : nil
    }

    /// Forgets unused slots, whose memory a burst has left behind.
    mutating func shrink() {
        guard count == 0 else { return }
        slots = []
        free = []
    }
}
