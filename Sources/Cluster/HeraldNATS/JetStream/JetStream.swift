import Foundation
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
    ///   - payload: Content of the message.
    ///   - subject: Subject without wildcards.
    ///   - headers: Header fields, beside those of the following parameters.
    ///   - sequence: Condition: sequence of the subject's newest message in the stream; 0: there is none; nil: no condition.
    ///   - timeToLive: Time after which the stream removes the message; whole seconds, rounded up, at least one.
    ///   - time: Time for the answer. Afterwards the outcome is ``PublishOutcome/unknown(_:)``.
    ///   - done: Called once.
    package func publish(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        expectedLastSubjectSequence sequence: UInt64? = nil,
        timeToLive: Duration? = nil,
        within time: Duration,
        done: @escaping @Sendable (PublishOutcome) -> Void
    ) {
        let publish = OutgoingPublish(
            subject: subject,
            payload: payload,
            headers: headers,
            expectedLastSubjectSequence: sequence,
            timeToLiveSeconds: timeToLive.map(Self.wholeSeconds)
        )
        connection.send(publish, .publish(done), within: time)
    }

    static func wholeSeconds(_ time: Duration) -> UInt64 {
        let (seconds, attoseconds) = time.components
        return UInt64(clamping: max(1, attoseconds > 0 ? seconds.addingReportingOverflow(1).partialValue : seconds))
    }

    // MARK: - Reads

    /// Reads the newest message of each subject, as of a sequence or later: all of them, or the outcome says why not.
    /// - Parameters:
    ///   - subjects: Subjects, which may have wildcards; the server answers with at most 1,024 messages.
    ///   - stream: Name of the stream.
    ///   - bound: Sequence of the stream that the answering replica must have applied; 0: any state will do.
    ///   - time: Time for the whole answer.
    ///   - done: Called once.
    package func readLast(
        _ subjects: [String],
        in stream: String,
        atLeast bound: UInt64,
        within time: Duration,
        done: @escaping @Sendable (BoundedRead) -> Void
    ) {
        let limit = connection.limits.readBytes
        let reading = NIOLoopBoundBox.makeBoxSendingValue(
            BoundedReading(bound: bound, byteLimit: limit),
            eventLoop: connection.eventLoop
        )
        let request = Request.gather(
            onMessage: { message in
                guard let outcome = reading.value.received(message) else { return false }
                done(outcome)
                return true
            },
            onFailure: { error in
                // The rest of a batch may hold parts of a read that is over.
                if let outcome = reading.value.failed(error) { done(outcome) }
            }
        )
        send(DirectGet(multiLast: subjects, maxBytes: limit), in: stream, request, within: time)
    }

    private func send(_ query: DirectGet, in stream: String, _ request: Request, within time: Duration) {
        guard SubjectRules.isToken(stream) else {
            return connection.refuse(request, NATSError(.badMessage, "\"\(stream)\" is not the name of a stream"))
        }
        let payload: ByteBuffer
        do {
            payload = ByteBuffer(bytes: try ProtocolJSON.encode(query))
        } catch {
            return connection.refuse(request, NATSError(.badMessage, "the read cannot be written as JSON: \(error)"))
        }
        let publish = OutgoingPublish(subject: "$JS.API.DIRECT.GET.\(stream)", payload: payload)
        connection.send(publish, request, within: time)
    }
}

/// Body of a direct get, in the words of the protocol.
private struct DirectGet: Encodable {
    let multiLast: [String]
    let maxBytes: Int
}
