import HeraldModel

/// The registrations of a shard and the writes that the store has not confirmed, by slot.
///
/// Both are in one entry, so that a post looks a slot up once.
struct SlotTable {
    typealias Index = Dictionary<Slot, SlotState>.Index

    private var slots: [Slot: SlotState] = [:]

    var isEmpty: Bool { slots.isEmpty }

    /// The unconfirmed writes of each slot that has some.
    var unconfirmedWrites: [Slot: UInt32] { slots.mapValues(\.unconfirmedWrites).filter { $0.value > 0 } }

    func index(of slot: Slot) -> Index? { slots.index(forKey: slot) }

    func registration(at index: Index?) -> Registration? { index.flatMap { slots.values[$0].registration } }

    func registration(_ slot: Slot) -> Registration? { slots[slot]?.registration }

    mutating func reserve(_ count: Int) {
        slots.reserveCapacity(count)
    }

    mutating func setRegistration(_ registration: Registration) {
        slots[registration.slot, default: SlotState()].registration = registration
    }

    mutating func endRegistration(_ slot: Slot, at moment: WallTime) {
        slots[slot]?.registration?.isLive = false
        slots[slot]?.registration?.ended = moment
    }

    mutating func forgetRegistration(_ slot: Slot) {
        guard let index = index(of: slot) else { return }
        slots.values[index].registration = nil
        removeIfEmpty(index)
    }

    // MARK: - Unconfirmed writes

    mutating func addUnconfirmedWrite(at index: Index) {
        slots.values[index].unconfirmedWrites += 1
    }

    mutating func addUnconfirmedWrites(_ count: UInt32, _ slot: Slot) {
        if count > 0 { slots[slot, default: SlotState()].unconfirmedWrites += count }
    }

    /// Hands the unconfirmed writes of a slot to a gate that opens.
    mutating func takeUnconfirmedWrites(_ slot: Slot) -> UInt32 {
        guard let index = index(of: slot) else { return 0 }
        let count = slots.values[index].unconfirmedWrites
        slots.values[index].unconfirmedWrites = 0
        removeIfEmpty(index)
        return count
    }

    mutating func confirmWrite(at index: Index?) {
        guard let index, slots.values[index].unconfirmedWrites > 0 else { return }
        slots.values[index].unconfirmedWrites -= 1
        removeIfEmpty(index)
    }

    private mutating func removeIfEmpty(_ index: Index) {
        if slots.values[index].isEmpty { slots.remove(at: index) }
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
