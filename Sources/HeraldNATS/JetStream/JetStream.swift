package import NIOCore

/// JetStream's interface, through a connection.
///
/// Callbacks come once, on the connection's loop.
package struct JetStream: Sendable {
    package let connection: NATSConnection

    package init(_ connection: NATSConnection) {
        self.connection = connection
    }

    /// Publishes a message into the stream that listens to its subject.
    /// - Parameters:
    ///   - sequence: Condition: sequence of the subject's newest message in the stream; 0: there is none; nil: no condition.
    ///   - timeToLive: Time after which the stream removes the message; whole seconds, rounded up, at least one.
    ///   - time: Time for the answer. Afterwards the outcome is ``PublishOutcome/unknown(_:)``.
    package func publish(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        expectedLastSubjectSequence sequence: UInt64? = nil,
        timeToLive: Duration? = nil,
        within time: Duration,
        done: @escaping @Sendable (PublishOutcome) -> Void
    ) {
        connection.eventLoop.execute { done(.notSent(.notConnected)) }
    }

    /// Reads a message by its sequence, from any replica; nil if that replica does not have it.
    package func read(
        _ sequence: UInt64,
        in stream: String,
        within time: Duration,
        done: @escaping @Sendable (Result<StoredMessage?, JetStreamError>) -> Void
    ) {
        connection.eventLoop.execute { done(.failure(.failed(.notConnected))) }
    }

    /// Reads the newest message of a subject without wildcards, from any replica; nil if that replica has none.
    ///
    /// The replica may lag behind the leader; ``readLast(_:in:atLeast:within:done:)`` tells.
    package func readLast(
        _ subject: String,
        in stream: String,
        within time: Duration,
        done: @escaping @Sendable (Result<StoredMessage?, JetStreamError>) -> Void
    ) {
        connection.eventLoop.execute { done(.failure(.failed(.notConnected))) }
    }

    /// Reads the newest message of each subject, as of a sequence or later: all of them, or the outcome says why not.
    /// - Parameters:
    ///   - subjects: Subjects, which may have wildcards; the server answers with at most 1,024 messages.
    ///   - bound: Sequence of the stream that the answering replica must have applied; 0: any state will do.
    package func readLast(
        _ subjects: [String],
        in stream: String,
        atLeast bound: UInt64,
        within time: Duration,
        done: @escaping @Sendable (BoundedRead) -> Void
    ) {
        connection.eventLoop.execute { done(.failed(.failed(.notConnected))) }
    }
}
