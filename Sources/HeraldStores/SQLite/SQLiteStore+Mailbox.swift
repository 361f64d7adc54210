import Dispatch
import GRDB
package import HeraldMailbox
package import HeraldModel
import Logging

extension SQLiteStore: MailboxStore {
    package var isAccepting: Bool { gate.isOpen }

    package var count: Int { index.count }

    package func report(to reporter: any MailboxStoreReporter) {
        self.reporter.current = reporter
    }

    package func put(_ letter: Letter, reason: StoreReason, tag: PutTag?) {
        guard !queue.append(.put(letter, reason: reason, tag: tag)) else { return }
        // The thread is gone. The caller may hold the lock that the report needs, so the answer comes from elsewhere.
        let reporter = reporter
        DispatchQueue.global().async { reporter.current?.failed([letter]) }
    }

    package func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        if index.remove(slot, sequence: sequence) {
            _ = queue.append(.remove(sequence: sequence, event))
        } else if let event {
            record(event, settling: nil)
        }
    }

    package func waiting(in slots: [Slot]) async throws -> [StoredNotification] {
        var wanted = index.entries(slots)
        var found: [StoredNotification] = []
        var mayBeBehind = true
        while !wanted.isEmpty {
            let reading = wanted
            let read = try await readers.read { try SQLiteStore.read(reading, $0) }
            found += read.notifications
            for entry in read.damaged { report(entry, "is damaged") }
            // A row that is gone was replaced or removed since. What the slot holds now is in another row, or nowhere;
            // between a commit and the index hearing of it, the index is asked again after the next commit.
            let gone = Set(read.gone)
            wanted = index.entries(read.gone.map(\.slot))
            if mayBeBehind, wanted.contains(where: gone.contains) {
                mayBeBehind = false
                do { try await change { _, _ in } } catch let error as StoreError where error != .closed {}
                wanted = index.entries(read.gone.map(\.slot))
            }
            for entry in wanted where gone.contains(entry) { report(entry, "is missing") }
            wanted.removeAll(where: gone.contains)
        }
        return found.sorted { $0.sequence < $1.sequence }
    }

    private func report(_ entry: SlotIndex.Entry, _ trouble: String) {
        logger.error(
            "a stored notification cannot be delivered; check the disk, restore a backup",
            metadata: ["notification": "\(entry.uniqueID)", "reason": "\(trouble)"]
        )
    }

    private struct Read {
        var notifications: [StoredNotification] = []
        var damaged: [SlotIndex.Entry] = []
        var gone: [SlotIndex.Entry] = []
    }

    private static func read(_ entries: [SlotIndex.Entry], _ database: Database) throws -> Read {
        let reader = try MailboxReader(database)
        var read = Read()
        for entry in entries {
            switch try reader.find(entry.sequence) {
            case .notification(let notification) where notification.slot == entry.slot:
                read.notifications.append(StoredNotification(notification: notification, sequence: entry.sequence))
            case .notification, .damaged:
                read.damaged.append(entry)
            case .nothing:
                read.gone.append(entry)
            }
        }
        return read
    }

    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int {
        var count = 0
        while count < limit {
            let slice = min(limit - count, configuration.upkeepSlice)
            let removed = try await change { _, batch in batch.discardExpired(at: moment, limit: slice) }
            count += removed
            if removed < slice { break }
        }
        return count
    }
}
