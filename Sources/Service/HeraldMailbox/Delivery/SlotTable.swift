import HeraldModel

/// The registrations of a shard and the writes that the store has not confirmed, by slot.
///
/// Both are in one element of an array, so that a post looks a slot up once.
struct SlotTable {
    /// The index of a slot's element, valid until a slot is added or removed.
    typealias Index = Int32

    private struct Element: SlotHolder {
        let slot: Slot
        var state = SlotState()
    }

    private var elements: [Element] = []
    private var indexes = SlotHashTable()
    /// Elements without a slot.
    private var free: [Index] = []

    var isEmpty: Bool { indexes.count == 0 }

    /// The unconfirmed writes of each slot that has some.
    var unconfirmedWrites: [Slot: UInt32] {
        // An element without a slot is empty.
        let found = elements.lazy.filter { $0.state.unconfirmedWrites > 0 }
        return Dictionary(found.map { ($0.slot, $0.state.unconfirmedWrites) }) { first, _ in first }
    }

    func index(of slot: Slot) -> Index? { indexes.find(slot, in: elements) }

    func registration(at index: Index?) -> Registration? { index.flatMap { elements[Int($0)].state.registration } }

    func registration(_ slot: Slot) -> Registration? { registration(at: index(of: slot)) }

    mutating func reserve(_ count: Int) {
        elements.reserveCapacity(count)
        indexes.reserve(count, in: elements)
    }

    mutating func setRegistration(_ registration: Registration) {
        elements[Int(ensure(registration.slot))].state.registration = registration
    }

    mutating func endRegistration(_ slot: Slot, at moment: WallTime) {
        guard let index = index(of: slot) else { return }
        elements[Int(index)].state.registration?.isLive = false
        elements[Int(index)].state.registration?.ended = moment
    }

    mutating func forgetRegistration(_ slot: Slot) {
        guard let index = index(of: slot) else { return }
        elements[Int(index)].state.registration = nil
        removeIfEmpty(index)
    }

    // MARK: - Unconfirmed writes

    mutating func addUnconfirmedWrite(at index: Index) {
        elements[Int(index)].state.unconfirmedWrites += 1
    }

    mutating func addUnconfirmedWrites(_ count: UInt32, _ slot: Slot) {
        if count > 0 { elements[Int(ensure(slot))].state.unconfirmedWrites += count }
    }

    /// Hands the unconfirmed writes of a slot to a gate that opens.
    mutating func takeUnconfirmedWrites(_ slot: Slot) -> UInt32 {
        guard let index = index(of: slot) else { return 0 }
        let count = elements[Int(index)].state.unconfirmedWrites
        elements[Int(index)].state.unconfirmedWrites = 0
        removeIfEmpty(index)
        return count
    }

    mutating func confirmWrite(at index: Index?) {
        guard let index, elements[Int(index)].state.unconfirmedWrites > 0 else { return }
        elements[Int(index)].state.unconfirmedWrites -= 1
        removeIfEmpty(index)
    }

    // MARK: - Elements

    /// The index of a slot, which is added if it is missing.
    private mutating func ensure(_ slot: Slot) -> Index {
        if let index = index(of: slot) { return index }
        let index: Index
        if let last = free.popLast() {
            index = last
            elements[Int(index)] = Element(slot: slot)
        } else {
            index = Index(elements.count)
            elements.append(Element(slot: slot))
        }
        indexes.add(index, in: elements)
        return index
    }

    private mutating func removeIfEmpty(_ index: Index) {
        guard elements[Int(index)].state.isEmpty else { return }
        indexes.remove(elements[Int(index)].slot, in: elements)
        free.append(index)
    }
}

/// The state of one slot, connected or not.
struct SlotState {
    /// nil if there is none, or if nothing is known of it any more.
    var registration: Registration?
    /// Writes that the store has not confirmed and that no open gate or delivery tracks.
    ///
    /// A gate that opens adopts them: a notification that arrives before they are confirmed is stored behind them, or the
    /// older one would reach the device after the newer. They lie in the padding behind a registration.
    var unconfirmedWrites: UInt32 = 0

    var isEmpty: Bool { registration == nil && unconfirmedWrites == 0 }
}
