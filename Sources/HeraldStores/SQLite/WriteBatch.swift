import GRDB
import HeraldMailbox
import HeraldModel

/// What one commit is to change in mailbox and journal, gathered in memory first: a notification that is replaced within
/// the batch is never written, only its lines are.
struct WriteBatch {
    private struct Staged {
        let letter: Letter
        let sequence: UInt64
        let tag: PutTag?
        /// Replaced or taken away by something later in the batch.
        var isOver = false
    }

    /// What a slot will hold, as far as the batch changes it.
    private enum Change {
        case put(Int)
        case nothing
    }

    private let index: SharedIndex
    private var staged: [Staged] = []
    private var changes: [Slot: Change] = [:]
    /// What the index is to forget once the batch is durable.
    private var forgotten: [SlotIndex.Entry] = []
    private var deaths: [Place] = []
    /// Who is left in bundles that go, in the order in which they are written again.
    private var moved: [(slot: Slot, sequence: UInt64)] = []
    private(set) var journal: [JournalRow] = []
    /// When this batch is; the time of its `stored` and `replaced` lines.
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

    /// Lets go of all that was in it: notifications are counted as long as somebody holds them.
    mutating func clear() {
        staged.removeAll(keepingCapacity: true)
        changes.removeAll(keepingCapacity: true)
        forgotten.removeAll(keepingCapacity: true)
        deaths.removeAll(keepingCapacity: true)
        moved.removeAll(keepingCapacity: true)
        journal.removeAll()
    }

    // What goes in.

    mutating func put(_ letter: Letter, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        let notification = letter.notification
        let slot = notification.slot
        let sequence = nextSequence
        nextSequence += 1
        if isNew { record(JournalEvent(.received, notification, at: notification.received)) }
        record(JournalEvent(JournalState(stored: reason), notification, at: now))
        switch changes.updateValue(.put(staged.count), forKey: slot) {
        case .put(let older):
            let replaced = staged[older].letter.notification
            staged[older].isOver = true
            record(JournalEvent(.replaced, replaced, at: now, replacement: notification.id))
        case .nothing:
            break
        case nil:
            if let held = index.stored(slot) {
                deaths.append(held.place)
                // Who was taken out was not replaced, but has a line of its own.
                if !held.isRemoved {
                    record(WriteBatch.event(.replaced, held, at: now, replacement: notification.id))
                }
            }
        }
        staged.append(Staged(letter: letter, sequence: sequence, tag: tag))
    }

    /// Takes away what was taken out of the index, unless something of the batch or of an earlier one did already.
    mutating func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        if let event { record(event) }
        guard changes[slot] == nil, let held = index.stored(slot), held.sequence == sequence else { return }
        forgotten.append(held)
        deaths.append(held.place)
        changes[slot] = .nothing
    }

    /// Adds a line to the journal.
    mutating func record(_ event: JournalEvent) {
        if journal.isEmpty || journal[journal.count - 1].isFull { journal.append(JournalRow()) }
        journal[journal.count - 1].append(event)
    }

    /// How many lines the journal gets.
    var lineCount: Int { journal.reduce(0) { $0 + $1.count } }

    /// Takes away what a slot holds, whatever it is, with a line in the journal; and what was taken out of it, which has a
    /// line of its own, in an order that may still be on its way.
    mutating func discard(_ slot: Slot, _ state: JournalState, at moment: WallTime) {
        switch changes[slot] {
        case .put(let place):
            staged[place].isOver = true
            record(JournalEvent(state, staged[place].letter.notification, at: moment))
            // What the first put of the batch killed, if anything.
            if let held = index.stored(slot) { forgotten.append(held) }
        case .nothing:
            return
        case nil:
            guard let held = index.stored(slot) else { return }
            if held.isRemoved {
                forgotten.append(held)
                deaths.append(held.place)
            } else {
                forget(held, state, at: moment)
            }
        }
        changes[slot] = .nothing
    }

    /// Takes away up to `limit` notifications whose time was over at a moment, each with a line in the journal.
    /// - Returns: How many.
    mutating func discardExpired(at moment: WallTime, limit: Int) -> Int {
        var count = 0
        for held in index.expired(at: moment, limit: limit) where changes[held.slot] == nil {
            forget(held, .discardedExpiredFromStorage, at: moment)
            changes[held.slot] = .nothing
            count += 1
        }
        return count
    }

    private mutating func forget(_ held: SlotIndex.Entry, _ state: JournalState, at moment: WallTime) {
        forgotten.append(held)
        deaths.append(held.place)
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
            replacement: replacement
        )
    }

    // What comes out.

    /// Writes what is changed.
    /// - Throws: `DatabaseError`.
    mutating func write(to table: inout BundleTable) throws {
        table.begin()
        deaths.sort()
        try table.bury(deaths) { living in
            for (head, place) in living {
                guard let held = index.stored(head.slot), held.sequence == head.sequence, held.place == place else {
                    return false
                }
            }
            moved += living.map { ($0.head.slot, $0.head.sequence) }
            return true
        }
        for one in staged where !one.isOver {
            try table.append(one.letter.notification, sequence: one.sequence)
        }
        try table.flush()
    }

    /// Tells the index what is durable now.
    /// - Parameter places: Where the table says that it wrote.
    func updateIndex(_ places: [Place]) {
        guard !staged.isEmpty || !forgotten.isEmpty else { return }
        index.commit(
            forgotten: forgotten,
            moved: zip(moved, places).lazy.map { ($0.slot, $0.sequence, $1) },
            stored: zip(staged.lazy.filter { !$0.isOver }, places[moved.count...]).lazy.map { one, place in
                let notification = one.letter.notification
                return SlotIndex.Entry(
                    slot: notification.slot,
                    sequence: one.sequence,
                    place: place,
                    expires: notification.storedUntil?.milliseconds ?? .max,
                    id: notification.id,
                    uniqueID: notification.uniqueID
                )
            }
        )
    }

    /// Every put of the batch, also those that are replaced already: each was accepted in its time.
    var puts: [StoredPut] {
        staged.map { StoredPut(letter: $0.letter, sequence: $0.sequence, tag: $0.tag, isReplaced: $0.isOver) }
    }
}
