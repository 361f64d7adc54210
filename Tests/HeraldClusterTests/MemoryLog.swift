import Dispatch
import HeraldCluster
import NIOCore
import Synchronization

@testable import HeraldSimulation

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
        var followers: [MemoryFollowing] = []
        var holdsBack = false
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

    /// Holds back what followers would hear from now on, or reports it.
    func holdBack(_ holdsBack: Bool) {
        let followers = state.withLock { state in
            state.holdsBack = holdsBack
            return state.followers
        }
        if !holdsBack { for follower in followers { follower.report() } }
    }

    /// The present followers hear nothing more.
    func dropFollowers() { state.withLock { $0.followers = [] } }

    /// The newest entries of a stream, by subject.
    func newest(in stream: LogStream) -> [LogSubject: LogEntry] { state.withLock { $0.newest[stream] ?? [:] } }

    /// The number of appended messages, without barriers.
    var appends: Int { state.withLock { $0.appends } }

    /// Removes all tombstones, as the log does a second later.
    func expireTombstones() {
        state.withLock { state in
            state.newest = state.newest.mapValues { stream in stream.filter { !$0.value.isTombstone } }
        }
    }

    func append(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (AppendOutcome) -> Void) {
        let append: @Sendable () -> Void = { [self] in
            let (outcome, followers) = state.withLock { state in
                let outcome = self.append(message, to: stream, &state)
                return (outcome, state.holdsBack ? [] : state.followers)
            }
            for follower in followers { follower.report() }
            done(outcome)
        }
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
        let entry = LogEntry(
            subject: message.subject,
            sequence: sequence,
            payload: message.payload,
            condition: message.expectedSequence
        )
        state.newest[stream, default: [:]][message.subject] = entry
        for follower in state.followers where follower.stream == stream { follower.add([entry]) }
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
            return found.isEmpty ? .failure(.behind) : .success(found)
        }
        done(result)
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        let following = MemoryFollowing(stream, SubjectFilter(filters), receive)
        let holdsBack = state.withLock { state in
            let newest = (state.newest[stream] ?? [:]).values.filter { $0.sequence > sequence ?? 0 }
            following.add(newest.sorted { $0.sequence < $1.sequence })
            state.followers.append(following)
            return state.holdsBack
        }
        if !holdsBack { following.report() }
        return { following.cancel() }
    }
}

/// A follower of a log in memory.
private final class MemoryFollowing: Sendable {
    private struct State {
        var waiting: [LogEntry] = []
        var isReporting = false
        var isCancelled = false
    }

    let stream: LogStream
    private let filter: SubjectFilter
    private let receive: LogReceiver
    private let state = Mutex(State())

    init(_ stream: LogStream, _ filter: SubjectFilter, _ receive: @escaping LogReceiver) {
        self.stream = stream
        self.filter = filter
        self.receive = receive
    }

    func add(_ entries: [LogEntry]) {
        let matching = entries.filter { filter.matches($0.subject) }
        state.withLock { $0.waiting += matching }
    }

    /// Reports what waits, in order and on one thread at a time.
    func report() {
        while let entries = next() {
            receive(entries)
            state.withLock { $0.isReporting = false }
        }
    }

    private func next() -> [LogEntry]? {
        state.withLock { state in
            guard !state.isReporting, !state.isCancelled, !state.waiting.isEmpty else { return nil }
            state.isReporting = true
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}
