import HeraldMailbox
import HeraldModel

/// The in-memory index: the stored notification of each slot, its position on disk, and its expiry.
///
/// It replaces two indexes on disk, which would turn every put into two writes to random pages. An entry takes some 130
/// bytes. The start rebuilds the index from the segments' headers.
///
/// ``WriteBatch/put(_:reason:tag:isNew:)`` replaces a slot's notification by a newer one.
///
/// A removed notification keeps its entry until the removal is durable, but only ``stored(_:)`` returns it. So the index
/// knows the position of every live notification on disk.
///
/// Entries are in one array. A ``SlotHashTable`` maps slots to array indexes. Entries that expire in the same second form a
/// linked list, whose head is in a dictionary.
struct SlotIndex {
    /// The facts about a stored notification that need no read.
    struct Entry: Hashable, Sendable {
        let slot: Slot
        /// Whether it was removed, and the removal is not durable yet.
        fileprivate(set) var isRemoved = false
        let traits: JournalTraits
        let sequence: UInt64
        fileprivate(set) var position: SegmentPosition
        /// Milliseconds of wall time; `Int64.max` if it never expires.
        let expires: Int64
        let id: NotificationID
        let uniqueID: NotificationID
    }

    private struct Node: SlotHolder {
        var entry: Entry
        var previous = SlotIndex.none
        var next = SlotIndex.none

        var slot: Slot { entry.slot }
    }

    private static let none: Int32 = -1
    /// Empty seconds that ``expired(at:limit:)`` walks through before it sorts the lists instead.
    private static let shortWalk: Int64 = 64

    private var nodes: [Node] = []
    private var indexes = SlotHashTable()
    private var lists: [Int64: Int32] = [:]
    private var free: Int32 = SlotIndex.none
    /// The earliest second that may have a list.
    private var earliest: Int64 = .max
    private var removedCount = 0

    /// The number of slots with a notification that is not removed.
    var count: Int { indexes.count - removedCount }

    /// The greatest sequence of all entries; scans all of them.
    var newestSequence: UInt64? { nodes.lazy.map(\.entry.sequence).max() }

    /// The notification of a slot.
    func entry(_ slot: Slot) -> Entry? {
        stored(slot).flatMap { $0.isRemoved ? nil : $0 }
    }

    /// The notification on disk of a slot, also if it is removed.
    func stored(_ slot: Slot) -> Entry? {
        indexes.find(slot, in: nodes).map { nodes[Int($0)].entry }
    }

    /// Sets the notification of a slot.
    /// - Returns: The previous one.
    @discardableResult
    mutating func set(_ entry: Entry) -> Entry? {
        guard let index = indexes.find(entry.slot, in: nodes) else {
            let index = newIndex(entry)
            indexes.add(index, in: nodes)
            link(index)
            return nil
        }
        let old = nodes[Int(index)].entry
        if old.isRemoved { removedCount -= 1 }
        if SlotIndex.second(old.expires) == SlotIndex.second(entry.expires) {
            nodes[Int(index)].entry = entry
        } else {
            unlink(index)
            nodes[Int(index)].entry = entry
            link(index)
        }
        return old
    }

    /// Marks the notification of a slot as removed, if it has this sequence.
    /// - Returns: Whether it had, and was not removed before.
    mutating func remove(_ slot: Slot, sequence: UInt64) -> Bool {
        guard let index = indexes.find(slot, in: nodes) else { return false }
        guard nodes[Int(index)].entry.sequence == sequence, !nodes[Int(index)].entry.isRemoved else { return false }
        nodes[Int(index)].entry.isRemoved = true
        removedCount += 1
        return true
    }

    /// Sets the position of a slot's notification, if it has this sequence.
    mutating func move(_ slot: Slot, sequence: UInt64, to new: SegmentPosition) {
        guard let index = indexes.find(slot, in: nodes), nodes[Int(index)].entry.sequence == sequence else { return }
        nodes[Int(index)].entry.position = new
    }

    /// Deletes the entry of a slot, if it has this sequence.
    mutating func forget(_ slot: Slot, sequence: UInt64) {
        guard let index = indexes.find(slot, in: nodes), nodes[Int(index)].entry.sequence == sequence else { return }
        if nodes[Int(index)].entry.isRemoved { removedCount -= 1 }
        unlink(index)
        indexes.remove(slot, in: nodes)
        nodes[Int(index)].next = free
        free = index
    }

    /// Up to `limit` entries that have expired at `moment`, earliest seconds first; they stay in the index.
    mutating func expired(at moment: WallTime, limit: Int) -> [Entry] {
        var found: [Entry] = []
        let last = SlotIndex.second(moment.milliseconds)
        guard limit > 0, earliest <= last, !lists.isEmpty else { return found }
        // After a long pause, or when the clock was set forward, most seconds in between have no list.
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
        indexes.reserve(count, in: nodes)
    }

    private func collect(_ second: Int64, at moment: WallTime, limit: Int, into found: inout [Entry]) {
        var index = lists[second] ?? SlotIndex.none
        while index != SlotIndex.none, found.count < limit {
            let node = nodes[Int(index)]
            if node.entry.expires <= moment.milliseconds, !node.entry.isRemoved { found.append(node.entry) }
            index = node.next
        }
    }

    private mutating func newIndex(_ entry: Entry) -> Int32 {
        guard free != SlotIndex.none else {
            nodes.append(Node(entry: entry))
            return Int32(truncatingIfNeeded: nodes.count - 1)
        }
        let index = free
        free = nodes[Int(index)].next
        nodes[Int(index)] = Node(entry: entry)
        return index
    }

    private mutating func link(_ index: Int32) {
        let expires = nodes[Int(index)].entry.expires
        nodes[Int(index)].previous = SlotIndex.none
        nodes[Int(index)].next = SlotIndex.none
        guard expires != .max else { return }
        let second = SlotIndex.second(expires)
        if let head = lists[second] {
            nodes[Int(index)].next = head
            nodes[Int(head)].previous = index
        }
        lists[second] = index
        earliest = min(earliest, second)
    }

    private mutating func unlink(_ index: Int32) {
        let node = nodes[Int(index)]
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
