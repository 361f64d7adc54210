import HeraldWire
import NIOCore

/// One notification for the binary interface, from `send` to its outcome: where it is, and who waits for it.
final class BinaryCall: @unchecked Sendable {
    // Sendable: what varies is touched on the client's event loop alone, from the moment the call is left in its inbox.

    enum Stage {
        /// Not yet with the dispatcher.
        case new
        /// In the dispatcher's queue.
        case waiting
        /// Written, and not settled.
        case written
        /// Its outcome was given.
        case done
    }

    /// How a call ended.
    enum Outcome: Sendable {
        case answered(BinaryAnswer)
        /// The service does not have it.
        case failed(ProviderError)
        case cancelled
    }

    /// Without an identifier where the sender gave none.
    let notification: BinaryNotification
    /// Until when it must have its outcome.
    let deadline: NIODeadline

    var stage = Stage.new
    var isCancelled = false
    /// Called once, with the outcome.
    var settle: ((Outcome) -> Void)?

    init(_ notification: BinaryNotification, deadline: NIODeadline) {
        self.notification = notification
        self.deadline = deadline
    }

    /// Gives the outcome; only the first counts.
    func end(_ outcome: Outcome) {
        guard stage != .done else { return }
        stage = .done
        settle?(outcome)
        settle = nil
    }
}
