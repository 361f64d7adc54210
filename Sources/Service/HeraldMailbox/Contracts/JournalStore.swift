package import HeraldModel

/// Stores the journal.
package protocol JournalStore: Sendable {
    /// Writes lines soon, in this order; returns at once. Lines that are not written when the process dies are lost.
    func record(_ events: [JournalEvent])

    /// Writes one line, and settles the completion when the line is durable.
    func record(_ event: JournalEvent, settling completion: Completion?)

    /// Writes the line of a refused request soon.
    /// - Returns: false if the store has no room for lines that it can do without.
    func recordRefusal(_ event: JournalEvent) -> Bool

    /// Finds the newest lines of a notification, device or app.
    /// - Returns: The lines that match, oldest first, including all recorded before the call.
    /// - Throws: If the journal cannot be read.
    func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent]

    /// Drops lines older than `moment`, and the oldest beyond `maximumBytes`; in bounded steps.
    /// - Throws: If the journal cannot be written.
    func trim(before moment: WallTime, maximumBytes: Int) async throws
}

extension JournalStore {
    package func recordRefusal(_ event: JournalEvent) -> Bool {
        record([event])
        return true
    }
}

/// The subject of a search in the journal.
package enum JournalQuery: Hashable, Sendable {
    /// A provider's identifier or the service's own.
    case notification(NotificationID)
    case device(DeviceNumber)
    case app(AppNumber)
    /// Refused requests for a topic of which there was no app then.
    case topicWithoutApp(Topic)
}
