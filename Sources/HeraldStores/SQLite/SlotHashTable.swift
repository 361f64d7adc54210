import HeraldModel

/// An element of an array in which a ``SlotHashTable`` finds slots.
protocol SlotHolder {
    var slot: Slot { get }
}

/// Hash table from slots to indexes of an array, whose elements hold the slots.
///
/// A lookup reads one word here, and then the element that the caller wants anyway. A `Dictionary` reads three places, and
/// holds the slots a second time. The hash is two multiplications: the numbers in a slot are the service's own, so nobody
/// chooses them to collide.
///
/// Open addressing with linear probing; at most half of the places are taken.
struct SlotHashTable {
    private static let free: Int32 = -1
    private static let fewestPlaces = 16

    /// The array's indexes; the number of places is a power of two.
    private var places = [Int32](repeating: free, count: fewestPlaces)
    private(set) var count = 0

    /// The index of a slot's element; nil if there is none.
    func find(_ slot: Slot, in holders: [some SlotHolder]) -> Int32? {
        place(of: slot, in: holders).map { places[$0] }
    }

    /// Adds the index of an element whose slot has none yet.
    mutating func add(_ index: Int32, in holders: [some SlotHolder]) {
        reserve(count + 1, in: holders)
        put(index, holders[Int(index)].slot)
        count += 1
    }

    /// Removes a slot, while its element is still in the array.
    mutating func remove(_ slot: Slot, in holders: [some SlotHolder]) {
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
    mutating func reserve(_ wanted: Int, in holders: [some SlotHolder]) {
        guard wanted * 2 > places.count else { return }
        var size = places.count
        while size < wanted * 2 { size *= 2 }
        let old = places
        places = [Int32](repeating: SlotHashTable.free, count: size)
        for index in old where index != SlotHashTable.free { put(index, holders[Int(index)].slot) }
    }

    private mutating func put(_ index: Int32, _ slot: Slot) {
        var place = firstPlace(slot)
        while places[place] != SlotHashTable.free { place = after(place) }
        places[place] = index
    }

    private func place(of slot: Slot, in holders: [some SlotHolder]) -> Int? {
        var place = firstPlace(slot)
        while places[place] != SlotHashTable.free {
            if holders[Int(places[place])].slot == slot { return place }
            place = after(place)
        }
        return nil
    }

    private func firstPlace(_ slot: Slot) -> Int {
        let mixed = (slot.device.value &+ UInt64(slot.app.value) &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
        return Int(truncatingIfNeeded: mixed ^ mixed >> 32) & (places.count - 1)
    }

    private func after(_ place: Int) -> Int { (place + 1) & (places.count - 1) }

    private func distance(from first: Int, to last: Int) -> Int { (last &- first) & (places.count - 1) }
}
