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

    /// One of the three copies of a stream.
    struct Replica: Sendable {
        private(set) var applied: UInt64 = 0
        /// The entries that it applies later, and when.
        private var coming: [(moment: NIODeadline, sequence: UInt64)] = []

        mutating func apply(_ sequence: UInt64, at moment: NIODeadline) { coming.append((moment, sequence)) }

        /// Applies what it has by now.
        mutating func pass(to now: NIODeadline) {
            guard !coming.isEmpty else { return }
            coming.removeAll { moment, sequence in
                guard moment <= now else { return false }
                applied = max(applied, sequence)
                return true
            }
        }

        mutating func catchUp(with sequence: UInt64) {
            applied = sequence
            coming = []
        }
    }

    struct Stream: Sendable {
        var sequence: UInt64 { UInt64(entries.count) }
        /// All messages, in order; the first has the sequence 1.
        var entries: [LogEntry] = []
        /// Every record that a subject ever had, oldest first.
        var records: [LogSubject: [Record]] = [:]
        fileprivate var replicas = [Replica(), Replica(), Replica()]
        /// The replica that has been cut off from the others, and still believes that it leads.
        var staleLeader: Int?

        /// Appends a message, which each replica applies in its time.
        fileprivate mutating func append(_ message: LogMessage, _ applied: () -> NIODeadline) -> AppendOutcome {
            let newest = records[message.subject]?.last?.sequence ?? 0
            if let expected = message.expectedSequence, expected != newest { return .moved(newest) }
            entries.append(LogEntry(subject: message.subject, sequence: sequence + 1, payload: message.payload))
            records[message.subject, default: []].append(Record(sequence: sequence, payload: message.payload))
            for replica in replicas.indices { replicas[replica].apply(sequence, at: applied()) }
            return .stored(sequence)
        }

        /// The newest entry of a subject for a replica.
        fileprivate func newest(_ subject: LogSubject, at sequence: UInt64) -> LogEntry? {
            records[subject]?.last { $0.sequence <= sequence }.map { record in
                LogEntry(subject: subject, sequence: record.sequence, payload: record.payload)
            }
        }

        /// The last sequence that a replica has applied.
        fileprivate mutating func applied(by replica: Int, at now: NIODeadline) -> UInt64 {
            if staleLeader != replica { replicas[replica].pass(to: now) }
            return replicas[replica].applied
        }

        /// Cuts a replica off that leads, or lets it catch up.
        fileprivate mutating func setStaleLeader(_ replica: Int?, at now: NIODeadline) {
            if let old = staleLeader, old != replica { replicas[old].catchUp(with: sequence) }
            if let replica { _ = applied(by: replica, at: now) }
            staleLeader = replica
        }
    }

    private struct Follower: Sendable {
        let number: Int
        let stream: LogStream
        let receive: LogReceiver
        var next: UInt64
        let filter: SubjectFilter
        /// The subjects that have been compared with the filter.
        var known: [LogSubject: Bool] = [:]

        mutating func matches(_ subject: LogSubject) -> Bool {
            if let isMatch = known[subject] { return isMatch }
            let isMatch = filter.matches(subject)
            known[subject] = isMatch
            return isMatch
        }
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
        let now = scheduler.now
        let (outcome, followers): (AppendOutcome, [Int]) = contents.withLock { contents in
            let outcome = contents.streams[stream, default: Stream()].append(message) { now + TimeAmount(chance.lag()) }
            return (outcome, contents.followers.compactMap { $0.stream == stream ? $0.number : nil })
        }
        guard case .stored(let sequence) = outcome else { return outcome }
        for follower in followers {
            scheduler.run(after: chance.lag()) { [self] in report(to: follower, upTo: sequence) }
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
        let (replica, now) = (chance.replica(), scheduler.now)
        return contents.withLock { contents in
            let applied = contents.streams[stream, default: Stream()].applied(by: replica, at: now)
            guard applied >= bound else { return nil }
            return subjects.compactMap { contents.streams[stream]?.newest($0, at: applied) }
                .sorted { $0.sequence < $1.sequence }
        }
    }

    // MARK: - Following

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        let (number, last) = contents.withLock { contents in
            contents.lastFollower += 1
            let follower = Follower(
                number: contents.lastFollower,
                stream: stream,
                receive: receive,
                next: (sequence ?? 0) + 1,
                filter: SubjectFilter(filters)
            )
            contents.followers.append(follower)
            return (follower.number, contents.streams[stream]?.sequence ?? 0)
        }
        scheduler.run(after: chance.lag()) { [self] in
            report(to: number, upTo: last)
        }
        return { [self] in
            contents.withLock { $0.followers.removeAll { $0.number == number } }
        }
    }

    /// Reports to a follower what it does not have yet, in the order of the log.
    private func report(to number: Int, upTo sequence: UInt64) {
        let (entries, receive): ([LogEntry], LogReceiver?) = contents.withLock { contents in
            guard let index = contents.followers.firstIndex(where: { $0.number == number }) else { return ([], nil) }
            let follower = contents.followers[index]
            let all = contents.streams[follower.stream]?.entries ?? []
            let new = follower.next <= sequence ? all[Int(follower.next - 1)..<Int(sequence)] : []
            contents.followers[index].next = max(follower.next, sequence + 1)
            return (new.filter { contents.followers[index].matches($0.subject) }, follower.receive)
        }
        if !entries.isEmpty { receive?(entries) }
    }

    /// Drops all followers.
    func end() {
        let followers = contents.withLock { contents in
            defer { contents = Contents() }
            return contents
        }
        withExtendedLifetime(followers) {}
    }

    // MARK: - Leaders

    /// Cuts a replica off that leads, or lets it catch up.
    func setStaleLeader(_ replica: Int?, of stream: LogStream) {
        let now = scheduler.now
        contents.withLock { $0.streams[stream, default: Stream()].setStaleLeader(replica, at: now) }
    }

    /// Reads from a server that believes that it leads: that is what a mutation takes for fresh.
    func readFromLeader(
        _ subjects: [LogSubject],
        in stream: LogStream,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        scheduler.run(after: chance.delay()) { [self] in
            let its = self.stream(stream)
            let applied = its.staleLeader.map { its.replicas[$0].applied } ?? its.sequence
            let entries = subjects.compactMap { its.newest($0, at: applied) }
            scheduler.run(after: chance.delay()) { done(.success(entries)) }
        }
    }
}
