/// Outcome of a call without an answer.
protocol CallOutcome: Sendable {
    /// The error says whether the service may have the notification.
    static func failed(_ error: ProviderError) -> Self
    /// The sender's task was cancelled.
    static var cancelled: Self { get }
}

enum CallStage {
    /// Not yet received by the dispatcher.
    case new
    /// In the queue.
    case waiting
    /// On a connection.
    case sent
    /// Has its outcome.
    case done
}

/// A call that a dispatcher queues and sends.
protocol QueuedCall: AnyObject, Sendable {
    associatedtype Outcome: CallOutcome

    var stage: CallStage { get set }
    var isCancelled: Bool { get set }
    /// Receives the outcome, once.
    var settle: ((Outcome) -> Void)? { get set }
}

extension QueuedCall {
    /// Ends the call; only the first outcome counts.
    func end(_ outcome: Outcome) {
        guard stage != .done else { return }
        stage = .done
        settle?(outcome)
        settle = nil
    }
}
