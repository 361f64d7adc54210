package import HeraldMailbox
package import HeraldModel

/// Where a door puts notifications: the post office, as a provider's connection needs it.
package protocol LetterBox: AnyObject, Sendable {
    /// How long a notification may be stored at the longest.
    var longestStorage: Duration { get }
    /// Takes a notification for a registration of that generation; never waits.
    func post(_ letter: Letter, generation: UInt32) -> PostDecision
    /// Takes a notification that no app could read: it goes on record, and nowhere else.
    func discard(_ letter: Letter, generation: UInt32, as state: JournalState) -> PostDecision
    /// Puts a further line on record about a notification that was posted.
    func note(_ state: JournalState, about notification: Notification)
}
