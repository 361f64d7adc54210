import HeraldModel

/// A priority queue of slots by due moment, each at most once: a binary heap.
struct DueQueue {
    private struct Entry {
        let due: WallTime
        let slot: Slot
    }

    private var heap: [Entry] = []
    /// The valid moment of each slot; any other entry of the heap is outdated and skipped.
    private var moments: [Slot: WallTime] = [:]

    var isEmpty: Bool { moments.isEmpty }

    /// The number of slots.
    var count: Int { moments.count }

    /// Sets the due moment of a slot.
    mutating func set(_ slot: Slot, due: WallTime) {
        guard moments[slot] != due else { return }
        moments[slot] = due
        heap.append(Entry(due: due, slot: slot))
        var place = heap.count - 1
        while place > 0, heap[place].due < heap[(place - 1) / 2].due {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        if heap.count > 2 * moments.count + 16 { dropOutdated() }
    }

    /// Removes up to `limit` due slots, the earliest first.
    mutating func take(dueAt now: WallTime, limit: Int) -> [Slot] {
        var taken: [Slot] = []
        while taken.count < limit, let first = heap.first, first.due <= now {
            removeFirst()
            guard moments[first.slot] == first.due else { continue }
            moments[first.slot] = nil
            taken.append(first.slot)
        }
        if moments.isEmpty { heap = [] }
        return taken
    }

    private mutating func dropOutdated() {
        // A sorted list is a heap.
        heap = moments.map { Entry(due: $0.value, slot: $0.key) }.sorted { $0.due < $1.due }
    }

    private mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count && heap[child].due < heap[least].due {
                least = child
            }
            guard least != place else { return }
            heap.swapAt(place, least)
            place = least
        }
    }
}
