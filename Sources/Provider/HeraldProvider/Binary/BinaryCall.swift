import HeraldWire
import NIOCore

/// One notification for the binary interface, from `send` to its outcome.
// Unchecked: one owner at a time. The sender fills it in before ``CallInbox`` has it; then only the event loop uses it.
final class BinaryCall: QueuedCall, @unchecked Sendable {
    enum Outcome: CallOutcome {
        case answered(BinaryAnswer)
        /// The service does not have it.
        case failed(ProviderError)
        case cancelled
    }

    /// The notification; its identifier is nil unless the sender chose one.
    let notification: BinaryNotification
    /// Time limit for the outcome.
    let deadline: NIODeadline

    var stage = CallStage.new
    var isCancelled = false
    var settle: ((Outcome) -> Void)?

    init(_ notification: BinaryNotification, deadline: NIODeadline) {
        self.notification = notification
        self.deadline = deadline
    }
}
