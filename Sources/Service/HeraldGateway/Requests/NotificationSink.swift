package import HeraldMailbox
package import HeraldModel

/// The post office, as a provider's connection uses it.
package protocol NotificationSink: AnyObject, Sendable {
    /// Maximum storage time of a notification.
    var longestStorage: Duration { get }
    /// Whether notifications come faster than they can be stored: a refusal is held back then.
    var isOverloaded: Bool { get }
    /// Accepts a notification; never blocks.
    func post(_ envelope: Envelope) -> PostDecision
    /// Journals a notification that is not delivered: no app could read it, or a drill discards it.
    func discard(_ envelope: Envelope, as state: JournalState) -> PostDecision
    /// Adds a journal entry about a refused request, unless there are too many; the entry is made only if it is added.
    func refuse(at now: WallTime, _ line: () -> JournalEvent)
    /// Adds a journal entry about a notification that was posted.
    func record(_ state: JournalState, about notification: Notification)
}
