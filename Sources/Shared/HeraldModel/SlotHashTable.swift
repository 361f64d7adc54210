/// An element of an array in which a ``SlotHashTable`` finds slots.
package protocol SlotHolder {
    var slot: Slot { get }
}

/// Hash table from slots to indexes of an array, whose elements hold the slots.
///
/// A lookup reads one word here, and then the element that the caller wants anyway. A `Dictionary` reads three places, and
/// holds the slots a second time. The hash is two multiplications: the numbers in a slot are the service's own, so nobody
/// chooses them to collide.
///
/// Open addressing with linear probing; at most half of the places are taken. Inlinable so that users specialize it for
/// their elements.
package struct SlotHashTable: Sendable {
    @usableFromInline static let free: Int32 = -1
    @usableFromInline static let fewestPlaces = 16

    /// The array's indexes; the number of places is zero or a power of two.
    @usableFromInline var places: [Int32] = []
    @usableFromInline package var count = 0

    package init() {}

    /// The index of a slot's element; nil if there is none.
    @inlinable
    package func find(_ slot: Slot, in holders: [some SlotHolder]) -> Int32? {
        place(of: slot, in: holders).map { places[$0] }
    }

    /// Adds the index of an element whose slot has none yet.
    @inlinable
    package mutating func add(_ index: Int32, in holders: [some SlotHolder]) {
        reserve(count + 1, in: holders)
        put(index, holders[Int(index)].slot)
        count += 1
    }

    /// Removes a slot, while its element is still in the array.
    @inlinable
    package mutating func remove(_ slot: Slot, in holders: [some SlotHolder]) {
        guard var hole = place(of: slot, in: holders) else { return }
        // The entries behind it move up, as far as none leaves the places where it is looked for.
        var next = after(hole)
        while places[next] != SlotHashTable.free {
            let first = firstPlace(holders[Int(places[next])].slot)
            if distance(from: first, to: next) >= distance(from: hole, to: next) {
                places[hole] = places[next]
                hole = next
            }
            next = after(next)
        }
        places[hole] = SlotHashTable.free
        count -= 1
    }

    /// Makes room for a number of slots.
    @inlinable
    package mutating func reserve(_ wanted: Int, in holders: [some SlotHolder]) {
        guard wanted * 2 > places.count else { return }
        var size = max(places.count, SlotHashTable.fewestPlaces)
        while size < wanted * 2 { size *= 2 }
        let old = places
        places = [Int32](repeating: SlotHashTable.free, count: size)
        for index in old where index != SlotHashTable.free { put(index, holders[Int(index)].slot) }
    }

    @inlinable
    mutating func put(_ index: Int32, _ slot: Slot) {
        var place = firstPlace(slot)
        while places[place] != SlotHashTable.free { place = after(place) }
        places[place] = index
    }

    @inlinable
    func place(of slot: Slot, in holders: [some SlotHolder]) -> Int? {
        guard !places.isEmpty else { return nil }
        var place = firstPlace(slot)
        while places[place] != SlotHashTable.free {
            if holders[Int(places[place])].slot == slot { return place }
            place = after(place)
        }
        return nil
    }

    @inlinable
    func firstPlace(_ slot: Slot) -> Int {
        let mixed = (slot.device.value &+ UInt64(slot.app.value) &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
        return Int(truncatingIfNeeded: mixed ^ mixed >> 32) & (places.count - 1)
    }

    @inlinable
    func after(_ place: Int) -> Int { (place + 1) & (places.count - 1) }

    @inlinable
    func distance(from first: Int, to last: Int) -> Int { (last &- first) & (places.count - 1) }
}
