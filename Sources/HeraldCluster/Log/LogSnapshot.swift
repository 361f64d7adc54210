import Logging
import Synchronization

/// Loads the newest messages of a whole stream.
package struct LogSnapshot: Sendable {
    private let log: any ReplicatedLog
    private let barriers: LogBarriers

    package init(log: any ReplicatedLog, barriers: LogBarriers) {
        self.log = log
        self.barriers = barriers
    }

    /// Reports the newest message of each subject of a stream as of this call, without tombstones and barriers, in the order
    /// of the log.
    /// - Throws: ``LogFailure`` if no barrier can be written. While servers are away later, it waits for them.
    package func load(_ stream: LogStream, _ body: @escaping @Sendable (LogEntry) -> Void) async throws {
        let bound = try await withCheckedThrowingContinuation { continuation in
            barriers.pass(stream) { continuation.resume(with: $0) }
        }
        let prefix = LogSubject.barriers(of: stream)
        let following = Mutex<(any LogFollowing)?>(nil)
        await withCheckedContinuation { continuation in
            let sink = SnapshotSink(upTo: bound) { entry in
                if !entry.isTombstone, !entry.subject.text.hasPrefix(prefix) { body(entry) }
            } done: {
                continuation.resume()
            }
            let started = log.follow([stream.subjects], in: stream, after: nil, sink)
            following.withLock { $0 = started }
        }
        following.withLock { $0 }?.cancel()
    }
}

extension LogSnapshot {
    /// Reports the records of a stream, with their sequences, in the order of the log.
    ///
    /// A damaged one is left out, with a line in the log of the service.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    func records<Record: LogRecord>(
        of stream: LogStream,
        as _: Record.Type,
        _ logger: Logger,
        _ body: @escaping @Sendable (Record, UInt64) -> Void
    ) async throws {
        let failure = Mutex<RecordError?>(nil)
        try await load(stream) { entry in
            do throws(RecordError) {
                body(try Record(entry.payload), entry.sequence)
            } catch {
                guard case .damaged(let kind) = error else { return failure.withLock { $0 = error } }
                // As in SQLite: one damaged record does not keep the service from all others.
                logger.error(
                    "left out a damaged record of the cluster's log",
                    metadata: ["kind": "\(kind)", "subject": "\(entry.subject)"]
                )
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// Reports entries until all have come that were in the log when the following began, and a bound has been reached.
private final class SnapshotSink: LogSink {
    private struct State {
        var hasCaughtUp = false
        var hasReachedBound = false
        var isDone = false

        /// Whether this is the moment at which nothing is missing any more.
        mutating func ends() -> Bool {
            guard hasCaughtUp, hasReachedBound, !isDone else { return false }
            isDone = true
            return true
        }
    }

    private let bound: UInt64
    private let body: @Sendable (LogEntry) -> Void
    private let done: @Sendable () -> Void
    private let state = Mutex(State())

    init(
        upTo bound: UInt64,
        _ body: @escaping @Sendable (LogEntry) -> Void,
        done: @escaping @Sendable () -> Void
    ) {
        self.bound = bound
        self.body = body
        self.done = done
    }

    func received(_ entries: [LogEntry]) {
        guard !state.withLock({ $0.isDone }) else { return }
        for entry in entries { body(entry) }
        let ends = state.withLock { state in
            // The replica that reports them may have been behind when the following began.
            if let last = entries.last, last.sequence >= bound { state.hasReachedBound = true }
            return state.ends()
        }
        if ends { done() }
    }

    func caughtUp() {
        let ends = state.withLock { state in
            state.hasCaughtUp = true
            return state.ends()
        }
        if ends { done() }
    }
}
