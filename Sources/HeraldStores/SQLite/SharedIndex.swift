import HeraldModel
import Synchronization

/// The ``SlotIndex`` under a lock.
///
/// The writer alone notes what is stored, after each commit; whoever removes something takes it out at once, so that
/// nobody reads it again while its row is not deleted yet.
final class SharedIndex: Sendable {
    private let index: Mutex<SlotIndex>

    init(_ index: sending SlotIndex) {
        self.index = Mutex(index)
    }

    var count: Int { index.withLock { $0.count } }

    func entry(_ slot: Slot) -> SlotIndex.Entry? {
        index.withLock { $0.entry(slot) }
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

    /// Notes a commit: what it took away, then what it stored.
    func commit(forgotten: [SlotIndex.Entry], stored: some Sequence<SlotIndex.Entry>) {
        index.withLock { index in
            for entry in forgotten { index.remove(entry.slot, sequence: entry.sequence) }
            for entry in stored { index.set(entry) }
        }
    }
}
