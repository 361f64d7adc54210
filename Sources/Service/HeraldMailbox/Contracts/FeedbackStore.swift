package import HeraldModel

/// Stores the feedback list: device tokens of removed apps to which a provider has sent.
package protocol FeedbackStore: Sendable {
    /// Puts a token on the list, unless its app is registered on the device.
    ///
    /// The list has one token for each registration: the first that is added, or one of a later generation. Returns at once.
    /// `done` is called once, from any thread, and returns at once: when the change is durable, or if the store fails.
    func addFeedback(_ record: FeedbackRecord, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void)

    /// The listed tokens of an app, oldest first, with every token that was added before the call.
    /// - Throws: If the store cannot be read.
    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord]

    /// Removes exactly these records.
    /// - Throws: If the store cannot be written.
    func clearFeedback(_ records: [FeedbackRecord]) async throws
}

/// A device token of a removed app.
package struct FeedbackRecord: Hashable, Sendable {
    package let slot: Slot
    package let generation: UInt32
    /// The moment at which a notification for the token first met the removed app.
    package let time: WallTime

    package init(slot: Slot, generation: UInt32, time: WallTime) {
        self.slot = slot
        self.generation = generation
        self.time = time
    }
}
