import GRDB
import HeraldMailbox
import HeraldModel

/// Something that is to be in the next commit.
enum WriteOrder: Sendable {
    /// With `isNew` its line `received` comes with it.
    case put(Letter, reason: StoreReason, tag: PutTag?, isNew: Bool = false)
    /// The index has it as taken out already.
    case remove(Slot, sequence: UInt64, JournalEvent?)
    /// A line, and who is told once it is durable.
    case record(JournalEvent, Receipt?)
    case job(WriteJob)

    /// Whether somebody waits for it.
    var isUrgent: Bool {
        switch self {
        case .put, .job: true
        case .record(_, let receipt): receipt != nil
        case .remove: false
        }
    }

    /// How many bytes of payload it holds.
    var payloadBytes: Int {
        if case .put(let letter, _, _, _) = self { letter.notification.payload.count } else { 0 }
    }
}

/// A change that somebody waits for.
struct WriteJob: Sendable {
    /// Makes the change.
    ///
    /// If it throws, what it did to the database is undone, and what it told the batch must be nothing; so it changes
    /// the database first.
    /// - Returns: What to do once the change is durable.
    let run: @Sendable (Database, inout WriteBatch) throws -> @Sendable () -> Void
    /// Tells that nothing of it was done.
    let fail: @Sendable (StoreError) -> Void
}
