import HeraldCluster
import NIOCore
import Synchronization

/// A log in memory for the trust of some nodes, with the faults that a test orders.
final class TrustTestLog: ReplicatedLog {
    /// A fault of one append.
    enum Fault {
        /// The message is stored, and the answer is lost.
        case lostAnswer
        /// The message is stored, the answer is lost, and the log is away from then on.
        case cutOff
    }

    private struct State {
        var last: UInt64 = 1000
        var entries: [LogSubject: LogEntry] = [:]
        var followers: [Follower] = []
        var fault: Fault?
        var isAway = false
    }

    private let state = Mutex(State())

    /// The fault of the next append other than a barrier.
    func fail(_ fault: Fault) { state.withLock { $0.fault = fault } }

    /// Whether no server takes or reads a message.
    func setAway(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }

    func append(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (AppendOutcome) -> Void) {
        let (outcome, followers) = state.withLock { append(message, &$0) }
        done(outcome)
        for follower in followers { follower.report() }
    }

    private func append(_ message: LogMessage, _ state: inout State) -> (AppendOutcome, [Follower]) {
        guard !state.isAway else { return (.notSent, []) }
        let present = state.entries[message.subject]?.sequence ?? 0
        if let expected = message.expectedSequence, expected != present { return (.moved(present), []) }
        state.last += 1
        let entry = LogEntry(
            subject: message.subject,
            sequence: state.last,
            payload: message.payload,
            condition: message.expectedSequence
        )
        state.entries[message.subject] = entry
        for follower in state.followers { follower.add([entry]) }
        guard !message.subject.text.contains(".barrier."), let fault = state.fault.take() else {
            return (.stored(state.last), state.followers)
        }
        state.isAway = fault == .cutOff
        return (.unknown, state.followers)
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        let entries: [LogEntry]? = state.withLock { state in
            state.isAway ? nil : subjects.compactMap { state.entries[$0] }.sorted { $0.sequence < $1.sequence }
        }
        done(entries.map { .success($0) } ?? .failure(.unavailable))
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        let follower = Follower(filters, receive)
        state.withLock { state in
            follower.add(
                state.entries.values.filter { $0.sequence > sequence ?? 0 }.sorted { $0.sequence < $1.sequence }
            )
            state.followers.append(follower)
        }
        follower.report()
        return { follower.cancel() }
    }

    /// Reports what matches its filters: whole subjects, or those that end with `*`.
    private final class Follower: Sendable {
        private let filters: [LogSubject]
        private let receive: LogReceiver
        /// nil once it is cancelled.
        private let waiting = Mutex<[LogEntry]?>([])

        init(_ filters: [LogSubject], _ receive: @escaping LogReceiver) {
            self.filters = filters
            self.receive = receive
        }

        func add(_ entries: [LogEntry]) {
            let matching = entries.filter { entry in
                filters.contains { filter in
                    filter.text.hasSuffix("*")
                        ? entry.subject.text.hasPrefix(filter.text.dropLast()) : entry.subject == filter
                }
            }
            waiting.withLock { $0? += matching }
        }

        func report() {
            let entries = waiting.withLock { waiting in
                defer { if waiting != nil { waiting = [] } }
                return waiting ?? []
            }
            if !entries.isEmpty { receive(entries) }
        }

        func cancel() { waiting.withLock { $0 = nil } }
    }
}

/// Time that stands still: nothing that is due later ever runs.
struct StandingTime: ClusterScheduler {
    let now = NIODeadline.now()

    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {}
}
