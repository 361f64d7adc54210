import Dispatch
import GRDB
package import HeraldMailbox
package import HeraldModel
import Logging

extension SQLiteStore: MailboxStore {
    package var isAccepting: Bool { gate.isOpen }

    package var isOverloaded: Bool { gate.isOnly(.overloaded) }

    package var count: Int { index.count }

    package func report(to reporter: any MailboxStoreReporter) {
        reports.mailbox.current = reporter
    }

    package func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        guard !queue.append(.put(envelope, reason: reason, tag: tag, isNew: isNew)) else { return }
        // The writer has ended. The caller may hold the lock that the report needs, so another thread reports.
        let reporter = reports.mailbox
        DispatchQueue.global().async { reporter.current?.failed([envelope]) }
    }

    package func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        let slot = slot.slot
        if index.remove(slot, sequence: sequence) {
            _ = queue.append(.remove(slot, sequence: sequence, event))
        } else if let event {
            record(event, settling: nil)
        }
    }

    package func read(
        _ registered: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        let slots = registered.map(\.slot)
        // The end of a registration and the next one remove what a slot holds: it has nothing of an earlier generation.
        let done: @Sendable (Result<[Found], any Error>) -> Void = { result in
            done(result.map { $0.map { found in found.stored(as: registered) } })
        }
        readers.submit(isQuick: true) { [self] database in
            try look(slots, Reading(), database)
        } _: { [self] result in
            switch result {
            case .failure(let error): done(.failure(error))
            case .success(let reading): finish(reading, attempts: SQLiteStore.readAttempts, done)
            }
        }
    }

    /// The most further transactions in which a read looks, if the writer cannot do it.
    private static let readAttempts = 3

    /// A notification that was read.
    private struct Found {
        let notification: Notification
        let sequence: UInt64

        /// The notification with the generation that its reader asked for.
        func stored(as registered: [RegisteredSlot]) -> StoredNotification {
            let generation = registered.first { $0.slot == notification.slot }?.generation ?? 0
            return StoredNotification(notification: notification, generation: generation, sequence: sequence)
        }
    }

    /// The progress of a read.
    private struct Reading {
        var found: [Found] = []
        /// Entries whose segments are missing although the index has them.
        var missing: [SlotIndex.Entry] = []
    }

    /// Reads the notifications of slots.
    ///
    /// A missing segment was deleted or compacted, and the index then has a newer position or none. If the index still has
    /// the old position, the transaction and the index differ by a commit, or the segment was lost.
    private func look(_ slots: [Slot], _ before: Reading, _ database: Database) throws -> Reading {
        var reading = before
        reading.missing = []
        var wanted = index.entries(slots)
        while !wanted.isEmpty {
            let read = try SQLiteStore.read(wanted, database)
            reading.found += read.notifications
            for entry in read.damaged { report(entry, "is damaged") }
            let missing = Set(read.missing)
            wanted = index.entries(read.missing.map(\.slot))
            if wanted.contains(where: missing.contains) {
                reading.missing = wanted
                return reading
            }
        }
        return reading
    }

    /// Returns the notifications, or has the writer read the missing ones.
    ///
    /// On the writer's connection, index and tables agree between commits, so that a segment missing there is lost. A writer
    /// that cannot write does not answer. It moves nothing either, so later transactions find the segment.
    private func finish(
        _ reading: Reading,
        attempts: Int,
        _ done: @escaping @Sendable (Result<[Found], any Error>) -> Void
    ) {
        guard !reading.missing.isEmpty else {
            done(.success(reading.found.sorted { $0.sequence < $1.sequence }))
            return
        }
        let slots = reading.missing.map(\.slot)
        let job = WriteJob(
            run: { [self] database, _ in
                // An error of this read does not fail the commit. If SQLite rolls the commit back, that fails by itself.
                let result = Result { try SQLiteStore.read(index.entries(slots), database) }
                return { [self] in
                    switch result {
                    case .failure(let error):
                        done(.failure(StoreError(reading: error, path: file.path)))
                    case .success(let read):
                        for entry in read.damaged { report(entry, "is damaged") }
                        for entry in read.missing { report(entry, "is missing") }
                        done(.success((reading.found + read.notifications).sorted { $0.sequence < $1.sequence }))
                    }
                }
            },
            fail: { [self] error in
                guard error.code != .closed else {
                    done(.failure(error))
                    return
                }
                guard attempts > 0 else {
                    for entry in reading.missing { report(entry, "is missing") }
                    done(.success(reading.found.sorted { $0.sequence < $1.sequence }))
                    return
                }
                // Not with other quick reads: their transaction may be older.
                readers.submit(isQuick: false) { [self] database in
                    try look(slots, reading, database)
                } _: { [self] result in
                    switch result {
                    case .failure(let error): done(.failure(error))
                    case .success(let reading): finish(reading, attempts: attempts - 1, done)
                    }
                }
            }
        )
        if !queue.append(.job(job)) { done(.failure(StoreError.closed)) }
    }

    private func report(_ entry: SlotIndex.Entry, _ reason: String) {
        logger.error(
            "a stored notification is lost and cannot be delivered; check the disk, restore a backup",
            metadata: ["notification": "\(entry.uniqueID)", "reason": "\(reason)"]
        )
    }

    private struct Read {
        var notifications: [Found] = []
        var damaged: [SlotIndex.Entry] = []
        var missing: [SlotIndex.Entry] = []
    }

    private static func read(_ entries: [SlotIndex.Entry], _ database: Database) throws -> Read {
        let reader = try SegmentReader(database)
        var read = Read()
        for entry in entries {
            switch try reader.find(entry) {
            case .notification(let notification):
                read.notifications.append(Found(notification: notification, sequence: entry.sequence))
            case .damaged:
                read.damaged.append(entry)
            case .missing:
                read.missing.append(entry)
            }
        }
        return read
    }

    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int {
        var count = 0
        while count < limit {
            let slice = min(limit - count, configuration.maintenanceSlice)
            let removed = try await change { _, batch in batch.discardExpired(at: moment, limit: slice) }
            count += removed
            if removed < slice { break }
        }
        return count
    }
}
