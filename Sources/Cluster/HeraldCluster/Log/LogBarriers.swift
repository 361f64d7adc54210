import NIOCore
import Synchronization

/// Reads that see everything that was stored before they began, by any node.
///
/// A replica may lag, and a former leader may not know that it is one. So a read first writes a barrier, a small record of
/// this node. The barrier's sequence then bounds the read. Reads of a stream that wait at the same time share a barrier.
package final class LogBarriers: Sendable {
    private typealias Waiting = @Sendable (Result<UInt64, LogFailure>) -> Void

    private struct State {
        /// The streams with a barrier under way, and who waits for the next one: the present one may come too early.
        var next: [LogStream: [Waiting]] = [:]
    }

    private let log: any ReplicatedLog
    private let node: NodeName
    private let state = Mutex(State())

    package init(log: any ReplicatedLog, node: NodeName) {
        self.log = log
        self.node = node
    }

    /// The subject of this node's barriers in a stream.
    package func subject(in stream: LogStream) -> LogSubject { .barrier(node, in: stream) }

    /// Reads the newest message of each subject as of this call, or later.
    ///
    /// `done` is called once, from any thread, possibly before this returns.
    package func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        let barrier = subject(in: stream)
        pass(stream) { [log] result in
            switch result {
            case .failure(let failure): done(.failure(failure))
            case .success(let sequence):
                // With the barrier among them, the answer is never empty, and names its bound.
                log.read(subjects + [barrier], in: stream, atLeast: sequence) { result in
                    done(result.map { entries in entries.filter { $0.subject != barrier } })
                }
            }
        }
    }

    /// Writes a barrier: every message that was stored before this call has a lower sequence.
    package func pass(_ stream: LogStream, _ done: @escaping @Sendable (Result<UInt64, LogFailure>) -> Void) {
        let isFirst = state.withLock { state in
            guard state.next[stream] == nil else {
                state.next[stream]?.append(done)
                return false
            }
            state.next[stream] = []
            return true
        }
        if isFirst { write(to: stream, for: [done], attempt: 1) }
    }

    private func write(to stream: LogStream, for waiting: [Waiting], attempt: Int) {
        let barrier = LogMessage(
            subject(in: stream),
            payload: ByteBuffer(integer: RecordWriter.version),
            answerTime: ClusterLimits.barrierAttempt
        )
        log.append(barrier, to: stream) { [self] outcome in
            switch outcome {
            case .stored(let sequence): finish(stream, waiting, .success(sequence))
            // Written twice, it does no harm.
            case .unknown where attempt < ClusterLimits.barrierAttempts:
                write(to: stream, for: waiting, attempt: attempt + 1)
            case .unknown, .notSent, .moved: finish(stream, waiting, .failure(.unavailable))
            case .refused(let refusal): finish(stream, waiting, .failure(.refused(refusal)))
            }
        }
    }

    private func finish(_ stream: LogStream, _ waiting: [Waiting], _ result: Result<UInt64, LogFailure>) {
        let next: [Waiting] = state.withLock { state in
            guard let next = state.next[stream], !next.isEmpty else {
                state.next[stream] = nil
                return []
            }
            state.next[stream] = []
            return next
        }
        for one in waiting { one(result) }
        if !next.isEmpty { write(to: stream, for: next, attempt: 1) }
    }
}

extension LogSubject {
    /// The barrier of a node in a stream.
    ///
    /// It has another number of parts than the records of the stream, so that no filter of records matches it.
    package static func barrier(_ node: NodeName, in stream: LogStream) -> LogSubject {
        LogSubject("\(barriers(of: stream))node.\(node.text)")
    }

    /// The beginning of all barriers of a stream.
    static func barriers(of stream: LogStream) -> String { "\(stream.subjects.text.dropLast())barrier." }
}
