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
        readers.submit(isQuick: true) { [self] database in
            try look(slots, Reading(), database)
        } _: { [self] result in
            switch result {
            case .failure(let error): done(.failure(error))
            case .success(let reading): finish(reading, attempts: SQLiteStore.readAttempts, done)
            }
        }
    }

    /// How often a read asks the index and looks into another transaction, if the writer cannot do it.
    private static let readAttempts = 3

    /// How far a read has come.
    private struct Reading {
        var found: [StoredNotification] = []
        /// Entries whose bundles are gone although the index has them.
        var behind: [SlotIndex.Entry] = []
    }

    /// Reads what slots hold.
    ///
    /// A bundle that is gone went with all that was in it, or was written again elsewhere. What the slot holds now is in
    /// another, or nowhere. Between a commit and the index hearing of it, and where the transaction is older than what the
    /// index says, it cannot be told from a bundle that is missing.
    private func look(_ slots: [Slot], _ before: Reading, _ database: Database) throws -> Reading {
        var reading = before
        reading.behind = []
        var wanted = index.entries(slots)
        while !wanted.isEmpty {
            let read = try SQLiteStore.read(wanted, database)
            reading.found += read.notifications
            for entry in read.damaged { report(entry, "is damaged") }
            let gone = Set(read.gone)
            wanted = index.entries(read.gone.map(\.slot))
            if wanted.contains(where: gone.contains) {
                reading.behind = wanted
                return reading
            }
        }
        return reading
    }

    /// Gives what was found, or has the writer read what was not: before it writes, index and tables agree on its
    /// connection, so that what it does not find is missing.
    ///
    /// A writer that cannot write answers nobody. It moves nothing either, so that other transactions soon find what is
    /// there.
    private func finish(
        _ reading: Reading,
        attempts: Int,
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        guard !reading.behind.isEmpty else {
            done(.success(reading.found.sorted { $0.sequence < $1.sequence }))
            return
        }
        let slots = reading.behind.map(\.slot)
        let job = WriteJob(
            run: { [self] database, _ in
                // An error of this read is not one of the commit; where SQLite rolls that back for it, it fails by itself.
                let result = Result { try SQLiteStore.read(index.entries(slots), database) }
                return { [self] in
                    switch result {
                    case .failure(let error):
                        done(.failure(StoreError(reading: error, path: file.path)))
                    case .success(let read):
                        for entry in read.damaged { report(entry, "is damaged") }
                        for entry in read.gone { report(entry, "is missing") }
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
                    for entry in reading.behind { report(entry, "is missing") }
                    done(.success(reading.found.sorted { $0.sequence < $1.sequence }))
                    return
                }
                // Not with others: their transaction may be older.
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
