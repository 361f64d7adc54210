import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldTestSupport
import NIOCore
import Synchronization
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// The log on a real server, beside those of the tests: the same script has the same answers on all.
@Suite struct NATSLogTests {
    private let connection: NATSConnection
    private let log: NATSLog
    private let memory = MemoryLog()
    private let simulation = SimLog(scheduler: QueueScheduler(), chance: Promptness())
    private let moment = WallTime(milliseconds: 1_790_000_000_000)

    init() async throws {
        connection = try await NATSServer.shared.connection()
        log = NATSLog(JetStream(connection))
    }

    /// Makes or checks the streams of a cluster.
    private func open(_ partitions: Int = 1, replicas: Int = 1) async throws -> ClusterRecord {
        let barriers = LogBarriers(log: log, node: try #require(NodeName("a")))
        let changes = RecordChanges(log: log, barriers: barriers)
        let partitions = try #require(Partitions(count: partitions))
        return try await ClusterStreams(JetStream(connection), replicas: replicas).open(partitions, at: moment, changes)
    }

    @Test func `a random script has the same answers on a server, in memory and in the simulation`() async throws {
        _ = try await open()
        let stream = LogStream.registrations(Partition(0))
        let subjects = (1...5).map { LogSubject.registrations(DeviceNumber($0), Partition(0)) }
        let (first, other) = (await anchor(log, stream), await anchor(memory, stream))
        #expect(first == Broadcast.firstNumber(at: moment))
        let third = await anchor(simulation, stream)
        var generator = SeededGenerator(state: 17)
        // The simulation keeps tombstones for ever, so it plays until the first of them ends.
        var isSimulated = true
        func both(_ message: (UInt64) -> LogMessage) async {
            let outcome = (await log.append(message(first), to: stream)).relative(to: first)
            #expect((await memory.append(message(other), to: stream)).relative(to: other) == outcome)
            guard isSimulated else { return }
            #expect((await simulation.append(message(third), to: stream)).relative(to: third) == outcome)
        }
        func newest(_ subject: LogSubject) async throws -> UInt64 {
            let newest = try await memory.read([.barrier, subject], in: stream, atLeast: .max)
            return newest.first { $0.subject == subject }?.sequence ?? 0
        }
        func playRound(of count: Int) async throws {
            for number in 0..<count {
                let subject = subjects[Int.random(in: 0..<5, using: &generator)]
                let expected: UInt64? = [nil, 0, try await newest(subject), other][
                    Int.random(in: 0..<4, using: &generator)
                ]
                let payload = ByteBuffer(integer: number)
                await both { first in
                    let expected = expected.map { $0 == 0 ? 0 : $0 - other + first }
                    return LogMessage(subject, payload: payload, expectedSequence: expected, timeToLive: .seconds(3600))
                }
            }
            let found = try await log.read(subjects + [.barrier], in: stream, atLeast: first)
            let kept = try await memory.read(subjects + [.barrier], in: stream, atLeast: .max)
            #expect(found.map { $0.sequence - first } == kept.map { $0.sequence - other })
            #expect(found.map(\.subject) == kept.map(\.subject) && found.map(\.payload) == kept.map(\.payload))
            guard isSimulated else { return }
            let played = try await simulation.read(subjects + [.barrier], in: stream, atLeast: third)
            #expect(played.map { $0.sequence - third } == kept.map { $0.sequence - other })
            #expect(played.map(\.subject) == kept.map(\.subject) && played.map(\.payload) == kept.map(\.payload))
        }
        try await playRound(of: 200)
        for subject in subjects.prefix(3) {
            let sequence = try await newest(subject)
            await both { .tombstone(subject, expecting: sequence - other + $0 - 1) }
            // Nothing after it: the server removes it after a second, which may be over before the next write.
            await both { .tombstone(subject, expecting: sequence - other + $0) }
        }
        isSimulated = false
        memory.expireTombstones()
        // The server removes tombstones by itself, a second after they were written.
        while try await log.read(subjects + [.barrier], in: stream, atLeast: first).contains(where: \.isTombstone) {}
        try await playRound(of: 200)
        await connection.close()
    }

    /// Writes the first message of a stream.
    private func anchor(_ log: some ReplicatedLog, _ stream: LogStream) async -> UInt64 {
        let message = LogMessage(.barrier, payload: ByteBuffer(string: "anchor"))
        guard case .stored(let sequence) = await log.append(message, to: stream) else { return 0 }
        return sequence
    }

    @Test func `writes to one record, one after another, are all taken`() async throws {
        _ = try await open()
        let subject = LogSubject.registrations(DeviceNumber(1), Partition(0))
        let stream = LogStream.registrations(Partition(0))
        var last: UInt64 = 0
        for number in 1...500 {
            let message = LogMessage(subject, payload: ByteBuffer(integer: number), expectedSequence: last)
            guard case .stored(let sequence) = await log.append(message, to: stream) else {
                Issue.record("write \(number) was refused")
                return
            }
            last = sequence
        }
        await connection.close()
    }

    @Test func `a follower of claims hears claims only, and catches up`() async throws {
        _ = try await open()
        let (partition, stream) = (Partition(0), LogStream.mailbox(Partition(0)))
        let claims = Mutex<[LogEntry]>([])
        let follower = LogFollower(
            stream,
            filters: [.claims(partition)],
            log: log,
            barriers: LogBarriers(log: log, node: try #require(NodeName("c"))),
            scheduler: EventLoopScheduler(connection.eventLoop)
        ) { entries in claims.withLock { $0 += entries } }
        func write(_ number: UInt64) async {
            let device = DeviceNumber(number)
            let slot = LogSubject.slot(Slot(device: device, app: AppNumber(1)), generation: 0, partition)
            for subject in [slot, .claim(device, partition)] {
                _ = await log.append(LogMessage(subject, payload: ByteBuffer(integer: number)), to: stream)
            }
        }
        await write(1)
        await write(2)
        try await follower.start()
        #expect(claims.withLock { $0.map(\.subject.claimedDevice?.value) } == [1, 2])
        await write(3)
        try await withCheckedThrowingContinuation { continuation in
            follower.catchUp { continuation.resume(with: $0) }
        }
        #expect(claims.withLock { $0.map(\.subject.claimedDevice?.value) } == [1, 2, 3])
        #expect(follower.position > claims.withLock { $0.last?.sequence ?? .max })
        follower.cancel()
        await connection.close()
    }

    @Test func `the registry of a server is loaded as it was`() async throws {
        let cluster = try await open(2)
        func registry() async throws -> ClusterRegistry {
            let clock = ManualClock()
            let context = ClusterContext(
                own: ClaimRecord(node: try #require(NodeName("a")), incarnation: 1),
                partitions: cluster.partitions,
                log: log,
                journal: MemoryStore(clock: clock),
                clock: clock,
                scheduler: EventLoopScheduler(connection.eventLoop),
                logger: .silent
            )
            let registry = ClusterRegistry(context, incarnation: cluster.incarnation)
            try await registry.start()
            return registry
        }
        let first = try await registry()
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        let number = try await first.number(of: app, for: nil, at: moment)
        for name in 1...50 {
            let device = try await first.number(of: try #require(DeviceID("phone-\(name)")))
            _ = try await first.register(Slot(device: device, app: number), at: moment, fence: 0)
        }
        let (before, after) = (first.snapshot(), try await registry().snapshot())
        #expect(Set(after.registrations) == Set(before.registrations) && after.registrations.count == 50)
        #expect(Set(after.devices.map(\.1)) == Set(before.devices.map(\.1)) && after.apps == before.apps)
        #expect(try await open(2) == cluster)
        await connection.close()
    }

    @Test func `a stream of another configuration is an error that names the difference`() async throws {
        let jetStream = JetStream(connection)
        let definition = StreamDefinition(.apps, replicas: 1)
        var configuration = definition.configuration(at: moment)
        configuration.deniesPurge = false
        configuration.ageNanoseconds = 1_000_000_000
        _ = try await jetStream.createStream(configuration)
        let differences = ["max_age is 1000000000, not 0", "deny_purge is false, not true"]
        await #expect(throws: StreamProblem.differs("HERALD_APPS", differences)) { try await open() }
        try await jetStream.deleteStream("HERALD_APPS")
        _ = try await open()
        try await jetStream.deleteStream("HERALD_APPS")
        await #expect(throws: StreamProblem.missing("HERALD_APPS")) { try await open() }
        await #expect(throws: ClusterIdentity.OtherPartitions.self) { try await open(2) }
        await #expect(throws: StreamProblem.otherReplicas(present: 1, wanted: 3)) { try await open(replicas: 3) }
        await connection.close()
    }
}

extension LogSubject {
    /// A subject that always has a message.
    fileprivate static var barrier: LogSubject { LogSubject("hrld.reg.0.barrier.a") }
}

extension AppendOutcome {
    /// The outcome with sequences that count from a stream's first one.
    fileprivate func relative(to first: UInt64) -> AppendOutcome {
        switch self {
        case .stored(let sequence): .stored(sequence - first)
        case .moved(let sequence): .moved(sequence == 0 ? 0 : sequence - first)
        case .refused, .notSent, .unknown: self
        }
    }
}
