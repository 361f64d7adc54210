import HeraldMailbox
import HeraldModel

/// The changes of one commit to mailbox and journal, collected in memory.
///
/// A notification that is replaced within the batch is never written; only its journal events are.
struct WriteBatch {
    private struct Staged {
        let envelope: Envelope
        let sequence: UInt64
        let tag: PutTag?
        /// Whether a later change of the batch replaced or removed it.
        var isOver = false
    }

    /// The batch's last change to a slot.
    private enum Change {
        case put(Int)
        case removal
    }

    private let index: SharedIndex
    private var staged: [Staged] = []
    private var changes: [Slot: Change] = [:]
    /// Entries that the index forgets once the batch is durable.
    private var forgotten: [SlotIndex.Entry] = []
    private var deleted: [SegmentPosition] = []
    /// Live notifications of compacted segments, in the order of their copying.
    private var moved: [(slot: Slot, sequence: UInt64)] = []
    private(set) var journal: [JournalRow] = []
    /// The number of events in ``journal``.
    private(set) var eventCount = 0
    /// The counts of the events in ``journal``.
    private(set) var tally = JournalTally()
    /// The same by hour.
    private(set) var hourly = HourlyCounts()
    /// Whether this commit writes all counts of hours.
    var wantsTallies = false
    /// The highest number of a sender in the journal's events.
    private(set) var newestSender = SenderNumber.unknown
    /// The time of this batch, and of its `stored` and `replaced` events.
    private(set) var now = WallTime(milliseconds: 0)
    /// The next put's sequence.
    private(set) var nextSequence: UInt64

    init(index: SharedIndex, nextSequence: UInt64) {
        self.index = index
        self.nextSequence = nextSequence
    }

    /// Empties the batch for the next commit.
    mutating func begin(at now: WallTime) {
        self.now = now
        clear()
    }

    /// Empties the batch, because the memory of a notification counts as in use while the batch holds it.
    mutating func clear() {
        staged.removeAll(keepingCapacity: true)
        changes.removeAll(keepingCapacity: true)
        forgotten.removeAll(keepingCapacity: true)
        deleted.removeAll(keepingCapacity: true)
        moved.removeAll(keepingCapacity: true)
        journal.removeAll()
        eventCount = 0
        tally.clear()
        hourly.clear()
        wantsTallies = false
        newestSender = .unknown
    }

    // MARK: - Changes

    /// Adds a notification, which replaces the slot's older one: staged in this batch, or stored.
    mutating func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        let notification = envelope.notification
        let slot = notification.slot
        let sequence = nextSequence
        nextSequence += 1
        if isNew { record(JournalEvent(.received, notification, at: notification.received)) }
        record(JournalEvent(JournalState(stored: reason), notification, at: now))
        switch changes.updateValue(.put(staged.count), forKey: slot) {
        case .put(let older):
            let replaced = staged[older].envelope.notification
            staged[older].isOver = true
            record(JournalEvent(.replaced, replaced, at: now, replacement: notification.id))
        case .removal:
            break
        case nil:
            if let held = index.stored(slot) {
                deleted.append(held.position)
                // A removed notification was not replaced; its removal has its own event.
                if !held.isRemoved {
                    record(WriteBatch.event(.replaced, held, at: now, replacement: notification.id))
                }
            }
        }
        staged.append(Staged(envelope: envelope, sequence: sequence, tag: tag))
    }

    /// Deletes a notification that is removed from the index, unless this batch or an earlier one did already.
    mutating func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        if let event { record(event) }
        guard changes[slot] == nil, let held = index.stored(slot), held.sequence == sequence else { return }
        forgotten.append(held)
        deleted.append(held.position)
        changes[slot] = .removal
    }

    mutating func record(_ event: JournalEvent) {
        if eventCount.isMultiple(of: JournalRow.eventLimit) { journal.append(JournalRow()) }
        journal[journal.count - 1].append(event)
        eventCount += 1
        tally.count(event)
        hourly.count(event)
        if let sender = event.request?.sender, sender.value > newestSender.value { newestSender = sender }
    }

    /// The journal's events, decoded again, which only those need who watch.
    var events: [JournalEvent] {
        var events: [JournalEvent] = []
        for row in journal {
            row.bytes.withUnsafeBytes { _ = JournalRow.read($0) { events.append($0) } }
        }
        return events
    }

    /// Deletes the notification of a slot, with a journal event.
    ///
    /// A notification that is removed already gets no event, because the request of its removal has one.
    mutating func discard(_ slot: Slot, _ state: JournalState, at moment: WallTime) {
        switch changes[slot] {
        case .put(let index):
            staged[index].isOver = true
            record(JournalEvent(state, staged[index].envelope.notification, at: moment))
            // The first put of the batch deleted it on disk.
            if let held = self.index.stored(slot) { forgotten.append(held) }
        case .removal:
            return
        case nil:
            guard let held = index.stored(slot) else { return }
            if held.isRemoved {
                forgotten.append(held)
                deleted.append(held.position)
            } else {
                forget(held, state, at: moment)
            }
        }
        changes[slot] = .removal
    }

    /// Deletes up to `limit` notifications that have expired at a moment, each with a journal event.
    /// - Returns: The number of deleted notifications.
    mutating func discardExpired(at moment: WallTime, limit: Int) -> Int {
        var count = 0
        for held in index.expired(at: moment, limit: limit) where changes[held.slot] == nil {
            forget(held, .discardedExpiredFromStorage, at: moment)
            changes[held.slot] = .removal
            count += 1
        }
        return count
    }

    private mutating func forget(_ held: SlotIndex.Entry, _ state: JournalState, at moment: WallTime) {
        forgotten.append(held)
        deleted.append(held.position)
        record(WriteBatch.event(state, held, at: moment))
    }

    private static func event(
        _ state: JournalState,
        _ held: SlotIndex.Entry,
        at moment: WallTime,
        replacement: NotificationID? = nil
    ) -> JournalEvent {
        JournalEvent(
            time: moment,
            id: held.id,
            uniqueID: held.uniqueID,
            slot: held.slot,
            state: state,
            replacement: replacement,
            traits: held.traits
        )
    }

    // MARK: - Results

    /// Writes the mailbox's changes.
    /// - Throws: `DatabaseError`.
    mutating func write(to table: inout SegmentTable) throws {
        table.begin()
        deleted.sort()
        try table.delete(deleted) { live in
            for (header, position) in live {
                guard let held = index.stored(header.slot), held.sequence == header.sequence, held.position == position
                else { return false }
            }
            moved += live.map { ($0.header.slot, $0.header.sequence) }
            return true
        }
        for one in staged where !one.isOver {
            try table.append(one.envelope.notification, sequence: one.sequence)
        }
        try table.flush()
    }

    /// Updates the index after the commit, with the positions of all notifications that the table has written.
    func updateIndex(_ positions: [SegmentPosition]) {
        guard !staged.isEmpty || !forgotten.isEmpty else { return }
        index.commit(
            forgotten: forgotten,
            moved: zip(moved, positions).lazy.map { ($0.slot, $0.sequence, $1) },
            stored: zip(staged.lazy.filter { !$0.isOver }, positions[moved.count...]).lazy.map { one, position in
                let notification = one.envelope.notification
                return SlotIndex.Entry(
                    slot: notification.slot,
                    traits: JournalTraits(pushType: notification.pushType, priority: notification.priority),
                    sequence: one.sequence,
                    position: position,
                    expires: notification.storedUntil?.milliseconds ?? .max,
                    id: notification.id,
                    uniqueID: notification.uniqueID
                )
            }
        )
    }

    /// Every put of the batch, also the replaced ones: each was accepted.
    var puts: [StoredPut] {
        staged.map { StoredPut(envelope: $0.envelope, sequence: $0.sequence, tag: $0.tag, isReplaced: $0.isOver) }
    }
}
