package import HeraldNATS
import NIOCore
import Synchronization

/// The replicated log on JetStream.
package final class NATSLog: ReplicatedLog {
    private let jetStream: JetStream
    private let silence = Mutex(WriteSilence())
    /// Whether every write is taken: then an append costs no lock.
    private let isUndisturbed = Atomic(true)

    package init(_ jetStream: JetStream) {
        self.jetStream = jetStream
    }

    // MARK: - Append

    package func append(
        _ message: LogMessage,
        to stream: LogStream,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    ) {
        append(message, to: stream, until: .now() + TimeAmount(message.answerTime), done)
    }

    private func append(
        _ message: LogMessage,
        to stream: LogStream,
        until deadline: NIODeadline,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    ) {
        jetStream.publish(
            message.payload,
            to: message.subject.text,
            expectedLastSubjectSequence: message.expectedSequence,
            timeToLive: message.timeToLive,
            within: message.answerTime
        ) { [self] outcome in
            // JetStream checks one conditional write of a subject at a time. It says so also shortly after the last one.
            if case .refused(let refusal) = outcome, refusal.code == JetStreamRefusal.concurrentWrite, deadline > .now()
            {
                return after(ClusterLimits.concurrentWritePause) {
                    self.append(message, to: stream, until: deadline, done)
                }
            }
            note(outcome, of: stream, sent: deadline - TimeAmount(message.answerTime))
            done(AppendOutcome(outcome))
        }
    }

    /// Leaves a server that takes no writes.
    private func note(_ outcome: PublishOutcome, of stream: LogStream, sent: NIODeadline) {
        switch outcome {
        case .stored:
            guard !isUndisturbed.load(ordering: .relaxed) else { return }
            let hasSettled = silence.withLock { silence in
                defer { isUndisturbed.store(silence.isOver, ordering: .relaxed) }
                return silence.stored(in: stream, at: .now())
            }
            if hasSettled { jetStream.connection.settle() }
        case .notSent(let error), .unknown(let error):
            // After others, the connection is gone, or nothing was asked of the server.
            guard error.kind == .timeout || error.kind == .noResponders else { return }
            let leaves = silence.withLock { silence in
                isUndisturbed.store(false, ordering: .relaxed)
                return silence.unanswered(in: stream, sent: sent, at: .now())
            }
            if leaves {
                jetStream.connection.leave("takes no writes: it may be cut off from the other NATS servers")
            }
        case .refused: break
        }
    }

    // MARK: - Read

    package func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        let read = Read(
            subjects: subjects.map(\.text),
            stream: stream.name,
            bound: bound,
            deadline: .now() + TimeAmount(ClusterLimits.readDeadline),
            done: done
        )
        attempt(read, pause: ClusterLimits.shortestReadPause)
    }

    private struct Read: Sendable {
        let subjects: [String]
        let stream: String
        let bound: UInt64
        let deadline: NIODeadline
        let done: @Sendable (Result<[LogEntry], LogFailure>) -> Void
    }

    private func attempt(_ read: Read, pause: Duration) {
        let time = min(ClusterLimits.readAttempt, .nanoseconds((read.deadline - .now()).nanoseconds))
        jetStream.readLast(read.subjects, in: read.stream, atLeast: read.bound, within: time) { [self] outcome in
            let failure: LogFailure
            switch outcome {
            case .complete(let messages, _): return read.done(.success(messages.map { LogEntry($0) }))
            // One of the subjects has a message at the bound or before: a replica that has none is behind.
            case .behind, .nothing: failure = .behind
            case .failed(.refused(let refusal)) where refusal.status != JetStreamRefusal.unavailable:
                return read.done(.failure(.refused(LogRefusal(refusal))))
            case .failed(.failed(let error)) where error.kind == .closed: return read.done(.failure(.unavailable))
            case .failed: failure = .unavailable
            }
            guard .now() + TimeAmount(pause) < read.deadline else { return read.done(.failure(failure)) }
            after(pause) { self.attempt(read, pause: min(pause * 2, ClusterLimits.longestReadPause)) }
        }
    }

    // MARK: - Follow

    package func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        let start = sequence.map { OrderedConsumer.Start.after($0) } ?? .newest
        let subjects = filters.map(\.text)
        let consumer = OrderedConsumer(jetStream, stream: stream.name, subjects: subjects, from: start) { event in
            // After an interruption it goes on by itself, and leaves nothing out.
            if case .message(let message) = event { receive([LogEntry(message)]) }
        }
        consumer.start()
        return { consumer.stop() }
    }

    private func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
        jetStream.connection.eventLoop.scheduleTask(in: TimeAmount(pause), body)
    }
}

extension AppendOutcome {
    /// The outcome of a publish; none becomes another one.
    package init(_ outcome: PublishOutcome) {
        switch outcome {
        case .stored(let sequence): self = .stored(sequence)
        case .refused(let refusal):
            self = refusal.lastSequence.map { .moved($0) } ?? .refused(LogRefusal(refusal))
        case .notSent: self = .notSent
        case .unknown: self = .unknown
        }
    }
}

extension LogEntry {
    fileprivate init(_ message: StoredMessage) {
        self.init(
            subject: LogSubject(message.subject),
            sequence: message.sequence,
            payload: message.payload,
            condition: message.headers.expectedLastSubjectSequence
        )
    }
}

extension LogRefusal {
    init(_ refusal: JetStreamRefusal) {
        self.init(code: refusal.code, text: refusal.description)
    }
}

extension JetStreamRefusal {
    /// The status of a server that cannot answer now.
    package static let unavailable = 503
}
