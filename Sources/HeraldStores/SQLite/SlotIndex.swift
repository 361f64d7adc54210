import HeraldModel

/// Which sequence each slot holds, and which of them are over at a given moment.
///
/// It takes the place of two indexes on disk, which would make of every put two writes to random pages. An entry takes
/// some 130 bytes; a scan of the bundles rebuilds it at the start.
///
/// What was taken out of a slot stays in its entry until that is durable, seen only by those who ask for what is stored:
/// so of everything that lives on disk the index knows the place.
///
/// Entries lie in one array. A dictionary leads from slots to places in it; the entries that are over in the same second
/// are linked into a list, whose head is in a second dictionary.
struct SlotIndex {
    /// What is known of a stored notification without reading it.
    struct Entry: Hashable, Sendable {
        let slot: Slot
        /// Whether it was taken out, which is not on disk yet.
        fileprivate(set) var isRemoved = false
        let sequence: UInt64
        fileprivate(set) var place: Place
        /// Milliseconds of wall time; `Int64.max` if it is never over.
        let expires: Int64
        let id: NotificationID
        let uniqueID: NotificationID
    }

    private struct Node {
        var entry: Entry
        var previous = SlotIndex.none
        var next = SlotIndex.none
    }

    private static let none: Int32 = -1
    /// How many seconds without a list are walked through without a second thought.
    private static let shortWalk: Int64 = 64

    private var nodes: [Node] = []
    private var places: [Slot: Int32] = [:]
    private var lists: [Int64: Int32] = [:]
    private var free: Int32 = SlotIndex.none
    /// No list is of an earlier second.
    private var earliest: Int64 = .max
    private var removedCount = 0

    /// How many slots hold something.
    var count: Int { places.count - removedCount }

    /// The greatest sequence of all entries, by looking at each.
    var newestSequence: UInt64? { nodes.lazy.map(\.entry.sequence).max() }

    /// What the slot holds.
    func entry(_ slot: Slot) -> Entry? {
        stored(slot).flatMap { $0.isRemoved ? nil : $0 }
    }

    /// What is on disk for the slot, also if it was taken out.
    func stored(_ slot: Slot) -> Entry? {
        places[slot].map { nodes[Int($0)].entry }
    }

    /// Notes what a slot holds, in place of what it held.
    /// - Returns: What it held.
    @discardableResult
    mutating func set(_ entry: Entry) -> Entry? {
        guard let place = places[entry.slot] else {
            let place = newPlace(entry)
            places[entry.slot] = place
            link(place)
            return nil
        }
        let old = nodes[Int(place)].entry
        if old.isRemoved { removedCount -= 1 }
        if SlotIndex.second(old.expires) == SlotIndex.second(entry.expires) {
            nodes[Int(place)].entry = entry
        } else {
            unlink(place)
            nodes[Int(place)].entry = entry
            link(place)
        }
        return old
    }

    /// Takes out what the slot holds, if it is of this sequence.
    /// - Returns: Whether it was.
    mutating func remove(_ slot: Slot, sequence: UInt64) -> Bool {
        guard let place = places[slot] else { return false }
        guard nodes[Int(place)].entry.sequence == sequence, !nodes[Int(place)].entry.isRemoved else { return false }
        nodes[Int(place)].entry.isRemoved = true
        removedCount += 1
        return true
    }

    /// Notes that what is stored for the slot lies elsewhere, if it is of this sequence.
    mutating func move(_ slot: Slot, sequence: UInt64, to new: Place) {
        guard let place = places[slot], nodes[Int(place)].entry.sequence == sequence else { return }
        nodes[Int(place)].entry.place = new
    }

    /// Forgets what is stored for the slot, if it is of this sequence.
    mutating func forget(_ slot: Slot, sequence: UInt64) {
        guard let place = places[slot], nodes[Int(place)].entry.sequence == sequence else { return }
        if nodes[Int(place)].entry.isRemoved { removedCount -= 1 }
        unlink(place)
        places[slot] = nil
        nodes[Int(place)].next = free
        free = place
    }

    /// Up to `limit` entries whose time was over at `moment`, those of the earliest seconds first.
    ///
    /// They stay.
    mutating func expired(at moment: WallTime, limit: Int) -> [Entry] {
        var found: [Entry] = []
        let last = SlotIndex.second(moment.milliseconds)
        guard limit > 0, earliest <= last, !lists.isEmpty else { return found }
        // After a long pause, or a clock that was set forward, most of the seconds in between have no list.
        guard last - earliest <= Int64(lists.count) + SlotIndex.shortWalk else {
            let seconds = lists.keys.filter { $0 <= last }.sorted()
            earliest = seconds.first ?? last
            for second in seconds where found.count < limit {
                collect(second, at: moment, limit: limit, into: &found)
            }
            return found
        }
        while earliest < last, lists[earliest] == nil { earliest += 1 }
        for second in earliest...last where found.count < limit {
            collect(second, at: moment, limit: limit, into: &found)
        }
        return found
    }

    mutating func reserve(_ count: Int) {
        nodes.reserveCapacity(count)
        places.reserveCapacity(count)
    }

    private func collect(_ second: Int64, at moment: WallTime, limit: Int, into found: inout [Entry]) {
        var place = lists[second] ?? SlotIndex.none
        while place != SlotIndex.none, found.count < limit {
            let node = nodes[Int(place)]
            if node.entry.expires <= moment.milliseconds, !node.entry.isRemoved { found.append(node.entry) }
            place = node.next
        }
    }

    private mutating func newPlace(_ entry: Entry) -> Int32 {
        guard free != SlotIndex.none else {
            nodes.append(Node(entry: entry))
            return Int32(truncatingIfNeeded: nodes.count - 1)
        }
        let place = free
        free = nodes[Int(place)].next
        nodes[Int(place)] = Node(entry: entry)
        return place
    }

    private mutating func link(_ place: Int32) {
        let expires = nodes[Int(place)].entry.expires
        nodes[Int(place)].previous = SlotIndex.none
        nodes[Int(place)].next = SlotIndex.none
        guard expires != .max else { return }
        let second = SlotIndex.second(expires)
        if let head = lists[second] {
            nodes[Int(place)].next = head
            nodes[Int(head)].previous = place
        }
        lists[second] = place
        earliest = min(earliest, second)
    }

    private mutating func unlink(_ place: Int32) {
        let node = nodes[Int(place)]
        guard node.entry.expires != .max else { return }
        if node.next != SlotIndex.none { nodes[Int(node.next)].previous = node.previous }
        if node.previous != SlotIndex.none {
            nodes[Int(node.previous)].next = node.next
        } else {
            let second = SlotIndex.second(node.entry.expires)
            lists[second] = node.next == SlotIndex.none ? nil : node.next
        }
    }

    private static func second(_ milliseconds: Int64) -> Int64 {
        WallTime(milliseconds: milliseconds).seconds
    }
}
