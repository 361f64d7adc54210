import Dispatch
import HeraldCluster
import NIOCore
import Synchronization

/// A log in memory, with faults that a test orders; it answers at once, or soon.
final class MemoryLog: ReplicatedLog {
    /// A fault of one append.
    enum Fault {
        /// The message is stored, and the answer is lost.
        case lostAnswer
        /// The message is stored, the answer is lost, and the log is away from then on.
        case cutOff
        /// The message and its answer are lost.
        case lostMessage
        /// No server took the message.
        case notSent
    }

    private struct State {
        var last: [LogStream: UInt64] = [:]
        var newest: [LogStream: [LogSubject: LogEntry]] = [:]
        var faults: [Fault] = []
        var isAway = false
        var appends = 0
    }

    private let state = Mutex(State())
    private let queue: DispatchQueue?

    /// - Parameter answersLater: Whether appends are made and answered one after another, on a thread of the log.
    init(answersLater: Bool = false) {
        queue = answersLater ? DispatchQueue(label: "memory-log") : nil
    }

    /// The faults of the next appends other than barriers, one each.
    func fail(_ faults: Fault...) { state.withLock { $0.faults = faults } }

    /// Whether no server takes a message.
    func setAway(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }

    /// The number of appended messages, without barriers.
    var appends: Int { state.withLock { $0.appends } }

    /// Removes all tombstones, as the log does a second later.
    func expireTombstones() {
        state.withLock { state in
            state.newest = state.newest.mapValues { stream in stream.filter { !$0.value.isTombstone } }
        }
    }

    func append(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (AppendOutcome) -> Void) {
        let append: @Sendable () -> Void = { [self] in done(state.withLock { self.append(message, to: stream, &$0) }) }
        if let queue { queue.async(execute: append) } else { append() }
    }

    private func append(_ message: LogMessage, to stream: LogStream, _ state: inout State) -> AppendOutcome {
        guard !state.isAway else { return .notSent }
        var fault: Fault?
        if !message.subject.text.contains(".barrier.") {
            state.appends += 1
            if !state.faults.isEmpty { fault = state.faults.removeFirst() }
        }
        switch fault {
        case .notSent: return .notSent
        case .lostMessage: return .unknown
        case .cutOff: state.isAway = true
        case .lostAnswer, nil: break
        }
        let present = state.newest[stream]?[message.subject]?.sequence ?? 0
        if let expected = message.expectedSequence, expected != present { return .moved(present) }
        let sequence = (state.last[stream] ?? 1000) + 1
        state.last[stream] = sequence
        state.newest[stream, default: [:]][message.subject] =
            LogEntry(subject: message.subject, sequence: sequence, payload: message.payload)
        return fault == nil ? .stored(sequence) : .unknown
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        let result: Result<[LogEntry], LogFailure> = state.withLock { state in
            guard !state.isAway else { return .failure(.unavailable) }
            let found = subjects.compactMap { state.newest[stream]?[$0] }.sorted { $0.sequence < $1.sequence }
            // An empty answer names no bound.
            guard let first = found.first, first.sequence <= bound || found.contains(where: { $0.sequence == bound })
            else {
                return .failure(.behind)
            }
            return .success(found)
        }
        done(result)
    }

    func follow(
        _ filter: LogSubject,
        in stream: LogStream,
        after sequence: UInt64?,
        _ sink: any LogSink
    ) -> any LogFollowing {
        let prefix = filter.text.dropLast()
        let entries = state.withLock { state in
            (state.newest[stream] ?? [:]).values.filter {
                $0.subject.text.hasPrefix(prefix) && $0.sequence > sequence ?? 0
            }
        }
        sink.received(entries.sorted { $0.sequence < $1.sequence })
        sink.caughtUp()
        return Ended()
    }

    /// Nothing comes after the snapshot.
    private struct Ended: LogFollowing {
        func cancel() {}
    }
}
