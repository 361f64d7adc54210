import HeraldWire
import NIOCore

/// One notification for the binary interface, from `send` to its outcome: where it is, and who waits for it.
///
/// Unchecked: what varies is touched on the client's event loop alone, from the moment the call is left in its inbox.
final class BinaryCall: QueuedCall, @unchecked Sendable {
    /// How a call ended.
    enum Outcome: CallOutcome {
        case answered(BinaryAnswer)
        /// The service does not have it.
        case failed(ProviderError)
        case cancelled
    }

    /// Without an identifier where the sender gave none.
    let notification: BinaryNotification
    /// Until when it must have its outcome.
    let deadline: NIODeadline

    var stage = CallStage.new
    var isCancelled = false
    var settle: ((Outcome) -> Void)?

    init(_ notification: BinaryNotification, deadline: NIODeadline) {
        self.notification = notification
        self.deadline = deadline
    }
}
