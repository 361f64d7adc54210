import HeraldModel
import Synchronization

/// The ``SlotIndex`` under a lock.
///
/// The writer alone notes what is stored and where, after each commit; whoever removes something takes it out at once, so
/// that nobody reads it again while its death is not on disk yet.
final class SharedIndex: Sendable {
    private let index: Mutex<SlotIndex>

    init(_ index: sending SlotIndex) {
        self.index = Mutex(index)
    }

    var count: Int { index.withLock { $0.count } }

    var newestSequence: UInt64? { index.withLock { $0.newestSequence } }

    func entry(_ slot: Slot) -> SlotIndex.Entry? {
        index.withLock { $0.entry(slot) }
    }

    func stored(_ slot: Slot) -> SlotIndex.Entry? {
        index.withLock { $0.stored(slot) }
    }

    func entries(_ slots: [Slot]) -> [SlotIndex.Entry] {
        index.withLock { index in slots.compactMap { index.entry($0) } }
    }

    func remove(_ slot: Slot, sequence: UInt64) -> Bool {
        index.withLock { $0.remove(slot, sequence: sequence) }
    }

    func expired(at moment: WallTime, limit: Int) -> [SlotIndex.Entry] {
        index.withLock { $0.expired(at: moment, limit: limit) }
    }

    /// Notes a commit: what it took away, what it wrote elsewhere, and what it stored.
    func commit(
        forgotten: [SlotIndex.Entry],
        moved: some Sequence<(slot: Slot, sequence: UInt64, place: Place)>,
        stored: some Sequence<SlotIndex.Entry>
    ) {
        index.withLock { index in
            for entry in forgotten { index.forget(entry.slot, sequence: entry.sequence) }
            for one in moved { index.move(one.slot, sequence: one.sequence, to: one.place) }
            for entry in stored { index.set(entry) }
        }
    }
}
