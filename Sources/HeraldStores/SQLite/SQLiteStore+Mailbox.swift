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

    package func put(_ letter: Letter, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        guard !queue.append(.put(letter, reason: reason, tag: tag, isNew: isNew)) else { return }
        // The thread is gone. The caller may hold the lock that the report needs, so the answer comes from elsewhere.
        let reporter = reporter
        DispatchQueue.global().async { reporter.current?.failed([letter]) }
    }

    package func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        if index.remove(slot, sequence: sequence) {
            _ = queue.append(.remove(slot, sequence: sequence, event))
        } else if let event {
            record(event, settling: nil)
        }
    }

    package func read(
        _ slots: [Slot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        read(slots, Reading(), done)
    }

    /// Reads on.
    ///
    /// A bundle that is gone went with all that was in it, or was written again elsewhere. What the slot holds now is in
    /// another, or nowhere; between a commit and the index hearing of it, and where the transaction is older than what the
    /// index says, the index is asked again after the next commit.
    private func read(
        _ slots: [Slot],
        _ before: Reading,
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        readers.submit(isQuick: true) { [self] database in
            var reading = before
            var wanted = index.entries(slots)
            while !wanted.isEmpty {
                let read = try SQLiteStore.read(wanted, database)
                reading.found += read.notifications
                for entry in read.damaged { report(entry, "is damaged") }
                let gone = Set(read.gone)
                wanted = index.entries(read.gone.map(\.slot))
                if reading.mayBeBehind, wanted.contains(where: gone.contains) {
                    reading.behind = wanted
                    return reading
                }
                for entry in wanted where gone.contains(entry) { report(entry, "is missing") }
                wanted.removeAll(where: gone.contains)
            }
            return reading
        } _: { [self] result in
            switch result {
            case .failure(let error):
                done(.failure(error))
            case .success(let reading) where reading.behind.isEmpty:
                done(.success(reading.found.sorted { $0.sequence < $1.sequence }))
            case .success(var reading):
                let slots = reading.behind.map(\.slot)
                reading.behind = []
                reading.mayBeBehind = false
                let rest = reading
                afterNextCommit { error in
                    if let error { done(.failure(error)) } else { self.read(slots, rest, done) }
                }
            }
        }
    }

    /// Calls `done` once all that was ordered before is durable, or could not be made so; with an error if the store is
    /// closed.
    private func afterNextCommit(_ done: @escaping @Sendable (StoreError?) -> Void) {
        let job = WriteJob(
            run: { _, _ in { done(nil) } },
            fail: { done($0 == .closed ? .closed : nil) }
        )
        if !queue.append(.job(job)) { done(.closed) }
    }

    /// How far a read has come.
    private struct Reading {
        var found: [StoredNotification] = []
        /// Whether the index may not have heard of a commit yet.
        var mayBeBehind = true
        /// Entries whose bundles are gone although the index has them.
        var behind: [SlotIndex.Entry] = []
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
        let reader = try BundleReader(database)
        var read = Read()
        for entry in entries {
            switch try reader.find(entry) {
            case .notification(let notification):
                read.notifications.append(StoredNotification(notification: notification, sequence: entry.sequence))
            case .damaged:
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
