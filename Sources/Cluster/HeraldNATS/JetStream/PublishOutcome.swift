/// Outcome of a publish to JetStream.
///
/// Exactly one of four, and the client never turns one into another.
package enum PublishOutcome: Hashable, Sendable {
    /// The stream has stored the message under this sequence.
    case stored(sequence: UInt64)
    /// The stream refused the message, and has not stored it.
    case refused(JetStreamRefusal)
    /// The message never reached a stream: it was not written, or nobody listens to its subject.
    case notSent(NATSError)
    /// The message was written, and no answer came: the deadline passed, the connection ended, or the answer cannot be read.
    /// It may be stored, or may be stored later.
    case unknown(NATSError)
}

/// Refusal of a request by JetStream, in the server's words.
package struct JetStreamRefusal: Hashable, Sendable, CustomStringConvertible {
    /// Status in the manner of HTTP, such as 400, 404 or 503.
    package let status: Int
    /// Code of the error (`err_code`), such as 10071; 0 if the server gives none.
    package var code: Int = 0
    package let description: String

    /// Present last sequence, if an expected one was wrong (10071); 0: there is no message.
    package var lastSequence: UInt64? {
        guard code == Self.wrongLastSequence, let colon = description.utf8.lastIndex(of: UInt8(ascii: ":")) else {
            return nil
        }
        return Decimal.read(description.utf8[colon...].dropFirst().drop { $0 == UInt8(ascii: " ") })
    }

    /// `wrong last sequence: N`.
    package static let wrongLastSequence = 10_071
    /// Another write with the same check is in flight; the write may be repeated.
    package static let concurrentWrite = 10_164
    package static let streamNotFound = 10_059
    package static let streamNameInUse = 10_058
}

/// Error of a JetStream request other than a publish.
package enum JetStreamError: Error, Hashable, Sendable, CustomStringConvertible {
    /// JetStream refused the request.
    case refused(JetStreamRefusal)
    /// The request got no answer; ``NATSError/kind`` says whether it was sent.
    case failed(NATSError)

    package var description: String {
        switch self {
        case .refused(let refusal): "JetStream refused the request: \(refusal.description) (\(refusal.code))"
        case .failed(let error): error.reason
        }
    }
}
