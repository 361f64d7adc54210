package import NIOCore

/// A replicated log of a cluster: JetStream, or the simulation of the tests.
///
/// A stream keeps the newest message of each subject. Its sequences rise, and order everything that all nodes write to it.
/// No call waits. An engine keeps no data of a caller beyond its answer.
package protocol ReplicatedLog: Sendable {
    /// Appends a message.
    ///
    /// `done` is called once, from any thread, possibly before this returns.
    func append(
        _ message: LogMessage,
        to stream: LogStream,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    )

    /// Reads the newest message of each subject from a replica that has applied the sequence `bound`, in the order of the
    /// log.
    ///
    /// A subject without a message is absent. One of `subjects` must have a message at `bound` or before, such as a claim or
    /// the barrier record of the node: an engine's empty answer does not say what its replica has applied. The engine
    /// repeats the read while replicas are behind, until a deadline. `done` is called once, from any thread, possibly before
    /// this returns.
    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    )

    /// Reports the newest message of each subject that matches a filter, then what comes, in the order of the log,
    /// without gaps.
    ///
    /// A message that is replaced before it is reported may be left out. The filters may have wildcards, and no two
    /// match the same subject. `sequence` is that of the last message that the caller knows; nil for all.
    /// - Returns: A call that ends it.
    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing
}

extension ReplicatedLog {
    /// ``append(_:to:_:)`` as an async call.
    package func append(_ message: LogMessage, to stream: LogStream) async -> AppendOutcome {
        await withCheckedContinuation { continuation in
            append(message, to: stream) { continuation.resume(returning: $0) }
        }
    }
}

/// A message to append.
package struct LogMessage: Sendable {
    package var subject: LogSubject
    package var payload: ByteBuffer
    /// The sequence that the newest message of the subject must have, 0 for none; nil for no condition.
    package var expectedSequence: UInt64?
    /// The time after which the log removes it, at least a second; nil to keep it.
    package var timeToLive: Duration?
    /// The time for the answer, after which the outcome is unknown.
    package var answerTime: Duration
    /// Whether ``SealedLog`` seals it.
    package var isSealed = true

    package init(
        _ subject: LogSubject,
        payload: ByteBuffer,
        expectedSequence: UInt64? = nil,
        timeToLive: Duration? = nil,
        answerTime: Duration = ClusterLimits.putDeadline
    ) {
        self.subject = subject
        self.payload = payload
        self.expectedSequence = expectedSequence
        self.timeToLive = timeToLive
        self.answerTime = answerTime
    }

    /// Removes the message of a subject if it has that sequence: an empty message, which the log removes after a while.
    package static func tombstone(
        _ subject: LogSubject,
        expecting sequence: UInt64,
        timeToLive: Duration? = nil
    ) -> LogMessage {
        LogMessage(
            subject,
            payload: ByteBuffer(),
            expectedSequence: sequence,
            timeToLive: timeToLive ?? ClusterLimits.tombstoneTimeToLive
        )
    }
}

/// The outcome of an append.
package enum AppendOutcome: Hashable, Sendable {
    /// It has this sequence, and survives the loss of any one server.
    case stored(UInt64)
    /// Refused: the newest message of the subject has this sequence, not the expected one; 0 if there is none.
    case moved(UInt64)
    /// Refused for another reason; nothing was written.
    case refused(LogRefusal)
    /// The message never left this node, or no server took it; nothing was written.
    case notSent
    /// It was sent and not answered: it was written, or will be, or will not.
    case unknown
}

/// A server's refusal.
package struct LogRefusal: Hashable, Sendable, Error, CustomStringConvertible {
    /// The server's number for the reason; JetStream's `err_code`.
    package let code: Int
    package let text: String

    package init(code: Int, text: String) {
        self.code = code
        self.text = text
    }

    package var description: String { "NATS refused it: \(text) (\(code))" }
}

/// A message of a log.
package struct LogEntry: Sendable {
    package let subject: LogSubject
    package let sequence: UInt64
    package let payload: ByteBuffer
    /// The sequence that the newest message of the subject had when the log took it, 0 for none; nil if it had no condition.
    package let condition: UInt64?
    /// Whether no node of the cluster wrote it for this place; the payload is empty then, and nothing is known of the subject.
    package let isSetAside: Bool

    package init(
        subject: LogSubject,
        sequence: UInt64,
        payload: ByteBuffer,
        condition: UInt64? = nil,
        isSetAside: Bool = false
    ) {
        self.subject = subject
        self.sequence = sequence
        self.payload = payload
        self.condition = condition
        self.isSetAside = isSetAside
    }

    /// Whether it only says that the subject is empty.
    package var isTombstone: Bool { payload.readableBytes == 0 && !isSetAside }
}

/// The reason why a read failed.
package enum LogFailure: Error, Hashable, Sendable {
    /// No server answered before the deadline.
    case unavailable
    /// No replica that answered had applied the bound before the deadline.
    case behind
    /// The stream of this name takes writes, and brings none of them to its followers.
    case silent(String)
    case refused(LogRefusal)
}

extension LogFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unavailable: "no NATS server has answered"
        case .behind: "no NATS server that has answered is up to date"
        case .silent(let stream): "\(stream) takes writes, and none of them came back"
        case .refused(let refusal): "\(refusal)"
        }
    }
}

/// Receives the next messages of a followed filter, in the order of the log and from one thread at a time; tombstones too.
package typealias LogReceiver = @Sendable ([LogEntry]) -> Void

/// Ends the reports of a followed filter.
package typealias StopFollowing = @Sendable () -> Void
