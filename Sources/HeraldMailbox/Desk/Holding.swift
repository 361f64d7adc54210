import HeraldModel

/// What a ``Desk`` keeps of one slot, whether its device is there or not: one place, so that it is looked for once.
struct Holding {
    /// nil if there is none, or if nothing is known of it any more.
    var registration: Registration?
    /// How many puts of the slot the store has not reported, of which no gate and no delivery of the slot's present
    /// connection knows; a gate that opens takes them over.
    ///
    /// Bounded by what the store has in hand. They are in the padding behind a registration and cost no memory.
    var strayPuts: UInt32 = 0

    var isEmpty: Bool { registration == nil && strayPuts == 0 }
}
