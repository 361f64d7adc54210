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
            record([event])
        }
    }

    package func waiting(in slots: [Slot]) async throws -> [StoredNotification] {
        var wanted = index.entries(slots)
        var found: [StoredNotification] = []
        var missing: Set<UInt64> = []
        while !wanted.isEmpty {
            let reading = wanted
            let (read, gone) = try await readers.read { try SQLiteStore.read(reading, $0) }
            found += read.notifications
            for sequence in read.damaged {
                logger.error(
                    "a stored notification is damaged and will not be delivered; check the disk, restore a backup",
                    metadata: ["sequence": "\(sequence)"]
                )
            }
            // A row that is gone was replaced or removed since; what the slot holds now is in another row, or nowhere.
            missing.formUnion(gone.map(\.sequence))
            wanted = index.entries(gone.map(\.slot)).filter { !missing.contains($0.sequence) }
        }
        return found.sorted { $0.sequence < $1.sequence }
    }

    private struct Read {
        var notifications: [StoredNotification] = []
        var damaged: [UInt64] = []
    }

    private static func read(_ entries: [SlotIndex.Entry], _ database: Database) throws -> (Read, [SlotIndex.Entry]) {
        let reader = try MailboxReader(database)
        var read = Read()
        var gone: [SlotIndex.Entry] = []
        for entry in entries {
            switch try reader.find(entry.sequence) {
            case .notification(let notification) where notification.slot == entry.slot:
                read.notifications.append(StoredNotification(notification: notification, sequence: entry.sequence))
            case .notification, .damaged:
                read.damaged.append(entry.sequence)
            case .nothing:
                gone.append(entry)
            }
        }
        return (read, gone)
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
