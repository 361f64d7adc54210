import HeraldCluster
import HeraldModel
import NIOCore
import Synchronization

/// A replicated log in memory: three replicas that lag, and an engine that loses, delays and refuses as its fates say.
final class SimLog: ReplicatedLog {
    /// The fate of one append.
    enum Fate {
        /// Applied after the first delay, and answered after the second.
        case stored(Duration, answered: Duration)
        /// Applied after the delay, if ever; the sender gives up at `timeout` and never hears of it.
        case unknown(appliedAfter: Duration?)
        case notSent
        case refused
    }

    /// The decisions of chance.
    protocol Chance: AnyObject, Sendable {
        func fate(of message: LogMessage) -> Fate
        /// The time until a replica has applied an entry.
        func lag() -> Duration
        /// The time that a question or an answer takes.
        func delay() -> Duration
        func replica() -> Int
    }

    /// A message in a stream.
    struct Record: Sendable {
        let sequence: UInt64
        let payload: ByteBuffer
    }

    struct Stream: Sendable {
        var sequence: UInt64 { UInt64(entries.count) }
        /// All messages, in order; the first has the sequence 1.
        var entries: [LogEntry] = []
        /// Every record that a subject ever had, oldest first.
        var records: [LogSubject: [Record]] = [:]
        var applied: [UInt64] = [0, 0, 0]
        /// The replica that has been cut off from the others, and still believes that it leads.
        var staleLeader: Int?

        /// The newest record of a subject for a replica.
        func newest(_ subject: LogSubject, at sequence: UInt64) -> Record? {
            records[subject]?.last { $0.sequence <= sequence }
        }
    }

    private struct Follower: Sendable {
        let number: Int
        let stream: LogStream
        let sink: any LogSink
        var next: UInt64
        let filter: SubjectFilter
    }

    private struct Contents: Sendable {
        var streams: [LogStream: Stream] = [:]
        var followers: [Follower] = []
        var lastFollower = 0
    }

    static let appendTimeout = Duration.milliseconds(1000)
    static let readPause = Duration.milliseconds(2)
    static let readDeadline = Duration.milliseconds(2000)

    private let contents = Mutex(Contents())
    private let scheduler: any ClusterScheduler
    private let chance: any Chance

    init(scheduler: any ClusterScheduler, chance: any Chance) {
        self.scheduler = scheduler
        self.chance = chance
    }

    /// A look at a stream, for the test's oracle.
    func stream(_ stream: LogStream) -> Stream { contents.withLock { $0.streams[stream] ?? Stream() } }

    func append(
        _ message: LogMessage,
        to stream: LogStream,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    ) {
        switch chance.fate(of: message) {
        case .notSent: done(.notSent)
        case .refused: done(.refused(LogRefusal(code: 10077, text: "insufficient resources")))
        case .stored(let delay, let answered):
            scheduler.run(after: delay) { [self] in
                let outcome = apply(message, to: stream)
                scheduler.run(after: answered) { done(outcome) }
            }
        case .unknown(let delay):
            if let delay { scheduler.run(after: delay) { [self] in _ = apply(message, to: stream) } }
            scheduler.run(after: SimLog.appendTimeout) { done(.unknown) }
        }
    }

    /// Appends a message of the test's own, which nothing happens to.
    func appendSurely(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (UInt64?) -> Void) {
        scheduler.run(after: chance.delay()) { [self] in
            let outcome = apply(message, to: stream)
            scheduler.run(after: chance.delay()) {
                if case .stored(let sequence) = outcome { done(sequence) } else { done(nil) }
            }
        }
    }

    private func apply(_ message: LogMessage, to stream: LogStream) -> AppendOutcome {
        let outcome: AppendOutcome = contents.withLock { contents in
            let newest = contents.streams[stream]?.records[message.subject]?.last?.sequence ?? 0
            if let expected = message.expectedSequence, expected != newest { return .moved(newest) }
            let sequence = (contents.streams[stream]?.sequence ?? 0) + 1
            let entry = LogEntry(subject: message.subject, sequence: sequence, payload: message.payload)
            let record = Record(sequence: sequence, payload: message.payload)
            contents.streams[stream, default: Stream()].entries.append(entry)
            contents.streams[stream]?.records[message.subject, default: []].append(record)
            return .stored(sequence)
        }
        guard case .stored(let sequence) = outcome else { return outcome }
        for replica in 0..<3 {
            scheduler.run(after: chance.lag()) { [self] in
                contents.withLock { contents in
                    guard contents.streams[stream]?.staleLeader != replica else { return }
                    let applied = contents.streams[stream]?.applied[replica] ?? 0
                    contents.streams[stream]?.applied[replica] = max(applied, sequence)
                }
            }
        }
        for follower in contents.withLock({ $0.followers.filter { $0.stream == stream } }) {
            scheduler.run(after: chance.lag()) { [self] in report(to: follower.number, upTo: sequence) }
        }
        return outcome
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        read(subjects, in: stream, atLeast: bound, until: scheduler.now + TimeAmount(SimLog.readDeadline), done)
    }

    private func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        until deadline: NIODeadline,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        scheduler.run(after: chance.delay()) { [self] in
            guard let entries = look(subjects, in: stream, atLeast: bound) else {
                guard scheduler.now < deadline else { return done(.failure(.behind)) }
                return scheduler.run(after: SimLog.readPause) { [self] in
                    read(subjects, in: stream, atLeast: bound, until: deadline, done)
                }
            }
            scheduler.run(after: chance.delay()) { done(.success(entries)) }
        }
    }

    /// The answer of one replica; nil if it is behind.
    private func look(_ subjects: [LogSubject], in stream: LogStream, atLeast bound: UInt64) -> [LogEntry]? {
        let its = self.stream(stream)
        let replica = chance.replica()
        let applied = its.applied[replica]
        guard applied >= bound else { return nil }
        return subjects.compactMap { subject in
            its.newest(subject, at: applied).map { record in
                LogEntry(subject: subject, sequence: record.sequence, payload: record.payload)
            }
        }.sorted { $0.sequence < $1.sequence }
    }

    // MARK: - Following

    private final class Following: LogFollowing {
        let cancelling: @Sendable () -> Void
        init(_ cancelling: @escaping @Sendable () -> Void) { self.cancelling = cancelling }
        func cancel() { cancelling() }
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ sink: any LogSink
    ) -> any LogFollowing {
        let (number, last) = contents.withLock { contents in
            contents.lastFollower += 1
            let follower = Follower(
                number: contents.lastFollower,
                stream: stream,
                sink: sink,
                next: (sequence ?? 0) + 1,
                filter: SubjectFilter(filters)
            )
            contents.followers.append(follower)
            return (follower.number, contents.streams[stream]?.sequence ?? 0)
        }
        scheduler.run(after: chance.lag()) { [self] in
            report(to: number, upTo: last)
            sink.caughtUp()
        }
        return Following { [self] in
            contents.withLock { $0.followers.removeAll { $0.number == number } }
        }
    }

    /// Reports to a follower what it does not have yet, in the order of the log.
    private func report(to number: Int, upTo sequence: UInt64) {
        let (entries, sink): ([LogEntry], (any LogSink)?) = contents.withLock { contents in
            guard let index = contents.followers.firstIndex(where: { $0.number == number }) else { return ([], nil) }
            let follower = contents.followers[index]
            let all = contents.streams[follower.stream]?.entries ?? []
            let new = follower.next <= sequence ? all[Int(follower.next - 1)..<Int(sequence)] : []
            contents.followers[index].next = max(follower.next, sequence + 1)
            return (new.filter { follower.filter.matches($0.subject) }, follower.sink)
        }
        if !entries.isEmpty { sink?.received(entries) }
    }

    // MARK: - Leaders

    /// Cuts a replica off that leads, or lets it catch up.
    func setStaleLeader(_ replica: Int?, of stream: LogStream) {
        contents.withLock { contents in
            var its = contents.streams[stream] ?? Stream()
            if let old = its.staleLeader, old != replica { its.applied[old] = its.sequence }
            its.staleLeader = replica
            contents.streams[stream] = its
        }
    }

    /// Reads from a server that believes that it leads: that is what a mutation takes for fresh.
    func readFromLeader(
        _ subjects: [LogSubject],
        in stream: LogStream,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        scheduler.run(after: chance.delay()) { [self] in
            let its = self.stream(stream)
            let applied = its.staleLeader.map { its.applied[$0] } ?? its.sequence
            let entries = subjects.compactMap { subject in
                its.newest(subject, at: applied).map { record in
                    LogEntry(subject: subject, sequence: record.sequence, payload: record.payload)
                }
            }
            scheduler.run(after: chance.delay()) { done(.success(entries)) }
        }
    }
}
