package import HeraldMailbox
package import HeraldModel

// Shorthands for tests in which every registration is of generation 0.

extension Envelope {
    package convenience init(_ notification: Notification, completion: Completion? = nil) {
        self.init(notification, generation: 0, completion: completion)
    }
}

extension MailboxStore {
    package func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        remove(RegisteredSlot(slot, generation: 0), sequence: sequence, event: event)
    }

    package func read(
        _ slots: [Slot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        read(slots.map { RegisteredSlot($0, generation: 0) }, done)
    }

    package func waiting(in slots: [Slot]) async throws -> [StoredNotification] {
        try await waiting(in: slots.map { RegisteredSlot($0, generation: 0) })
    }
}
