import NIOCore

/// Request that waits for an answer, with its callback.
enum Request: Sendable {
    case publish(@Sendable (PublishOutcome) -> Void)
    case message(@Sendable (Result<NATSMessage, NATSError>) -> Void)
    /// Request with several answers. `onMessage` tells whether that was the last one; `onFailure` ends it without.
    case gather(onMessage: @Sendable (NATSMessage) -> Bool, onFailure: @Sendable (NATSError) -> Void)

    /// Ends the request without an answer.
    func fail(_ error: NATSError, wasSent: Bool) {
        switch self {
        case .publish(let done): done(wasSent ? .unknown(error) : .notSent(error))
        case .message(let done): done(.failure(error))
        case .gather(_, let onFailure): onFailure(error)
        }
    }

    /// Passes on an answer.
    /// - Returns: Whether the request is over.
    func answer(_ message: NATSMessage) -> Bool {
        switch self {
        case .publish(let done):
            done(PublishOutcome(answer: message))
            return true
        case .message(let done):
            done(message.isNoResponders ? .failure(.noResponders) : .success(message))
            return true
        case .gather(let onMessage, let onFailure):
            guard message.isNoResponders else { return onMessage(message) }
            onFailure(.noResponders)
            return true
        }
    }
}

/// Request that ended without an answer.
struct EndedRequest {
    let request: Request
    let error: NATSError
    /// Whether its message was handed to the socket.
    let wasSent: Bool

    func report() {
        request.fail(error, wasSent: wasSent)
    }
}
