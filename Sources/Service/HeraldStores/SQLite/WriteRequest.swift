import GRDB
import HeraldMailbox
import HeraldModel

/// A change for the next commit.
enum WriteRequest: Sendable {
    /// With `isNew`, the journal also gets the event `received`.
    case put(Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool = false)
    /// The index has the notification as removed already.
    case remove(Slot, sequence: UInt64, JournalEvent?)
    /// A journal event, and the completion that is settled once the event is durable.
    case record(JournalEvent, Completion?)
    case job(WriteJob)

    /// Whether a caller waits for the commit.
    var isUrgent: Bool {
        switch self {
        case .put, .job: true
        case .record(_, let completion): completion != nil
        case .remove: false
        }
    }

    /// Bytes of payload that the request holds in memory.
    var payloadBytes: Int {
        if case .put(let envelope, _, _, _) = self { envelope.notification.payload.count } else { 0 }
    }
}

/// A change whose caller waits for it.
struct WriteJob: Sendable {
    /// Makes the change.
    ///
    /// If it throws, its changes to the database are rolled back. It must then not have changed the batch, so it changes
    /// the database first.
    /// - Returns: The action to run once the change is durable.
    let run: @Sendable (Database, inout WriteBatch) throws -> @Sendable () -> Void
    /// Reports that nothing has changed.
    let fail: @Sendable (StoreError) -> Void
}
