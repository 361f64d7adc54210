/// The lines of the journal as they are written.
package protocol LineSource: Sendable {
    /// Makes a subscription to the lines that a search finds, from now on or from a place.
    /// - Returns: nil if there are too many subscribers.
    /// - Throws: ``AdminError`` for a search that makes no sense.
    func follow(_ search: String, after place: UInt64?) async throws -> (any LineFollower)?
}

/// A subscription to new lines, which ends with this object.
package protocol LineFollower: Sendable {
    /// Takes the lines since the last time; nil if there are none.
    func take() -> LineBatch?

    /// The place after the lines that were taken.
    var place: UInt64 { get }
}

/// New lines of the journal for one subscriber.
package struct LineBatch: Sendable {
    /// Oldest first.
    package let items: [JournalEntry]
    /// Number of further lines that were left out of ``items``.
    package let more: Int
    /// Number of lines that the subscriber was too slow for, before the search looked at them; at least.
    package let skipped: UInt64
    /// The place after these lines.
    package let place: UInt64

    package init(items: [JournalEntry], more: Int, skipped: UInt64, place: UInt64) {
        self.items = items
        self.more = more
        self.skipped = skipped
        self.place = place
    }
}
