/// How a call that was not answered ends.
protocol CallOutcome: Sendable {
    /// The service does not have it, or may not have it: the error says which.
    static func failed(_ error: ProviderError) -> Self
    /// Nobody waits for it any more.
    static var cancelled: Self { get }
}

/// How far a call has come.
enum CallStage {
    /// Not yet with the dispatcher.
    case new
    /// In the dispatcher's queue.
    case waiting
    /// On a connection.
    case sent
    /// Its outcome was given.
    case done
}

/// What somebody waits for while a dispatcher has it.
protocol QueuedCall: AnyObject, Sendable {
    associatedtype Outcome: CallOutcome

    var stage: CallStage { get set }
    var isCancelled: Bool { get set }
    /// Called once, with the outcome.
    var settle: ((Outcome) -> Void)? { get set }
}

extension QueuedCall {
    /// Gives the outcome; only the first counts.
    func end(_ outcome: Outcome) {
        guard stage != .done else { return }
        stage = .done
        settle?(outcome)
        settle = nil
    }
}
