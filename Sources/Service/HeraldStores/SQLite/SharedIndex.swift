import HeraldModel
import Synchronization

/// The ``SlotIndex``, shared under a lock.
///
/// Only the writer records stored notifications and their positions, after each commit. A removal changes the index at
/// once, so that no one reads the notification again before its tombstone is durable.
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

    /// Records a commit: forgotten, moved and stored notifications.
    func commit(
        forgotten: [SlotIndex.Entry],
        moved: some Sequence<(slot: Slot, sequence: UInt64, position: SegmentPosition)>,
        stored: some Sequence<SlotIndex.Entry>
    ) {
        index.withLock { index in
            for entry in forgotten { index.forget(entry.slot, sequence: entry.sequence) }
            for one in moved { index.move(one.slot, sequence: one.sequence, to: one.position) }
            for entry in stored { index.set(entry) }
        }
    }
}
