import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldTestSupport
import NIOPosix
import Synchronization
import Testing

@testable import HeraldCluster

/// The stores of a cluster's node keep the rules of every engine: on a log in memory, and on a real server.
@Suite struct ClusterStoreTests {
    @Test(arguments: StoreConformance.rules)
    func `the stores on a log in memory keep every rule`(rule: StoreConformance.Rule) async throws {
        try await StoreConformance.check(rule, on: .memoryLog)
    }

    // One after the other: a server that syncs for many at once answers some of them too late on a busy machine.
    @Test(.serialized, arguments: StoreConformance.rules)
    func `the stores on a NATS server keep every rule`(rule: StoreConformance.Rule) async throws {
        try await StoreConformance.check(rule, on: .natsServer)
    }
}

extension StoreEngine {
    static let memoryLog = StoreEngine(
        name: "log in memory",
        isDurable: true,
        journal: .separate,
        expiresByItself: true
    ) { clock in
        let partitions = try #require(Partitions(count: 1))
        let cluster = ClusterRecord(incarnation: 5, partitions: partitions, created: clock.now())
        return try await ClusterFixture(
            log: MemoryLog(answersLater: true).sealed(of: 5),
            cluster: cluster,
            clock: clock
        )
    }

    static let natsServer = StoreEngine(
        name: "NATS",
        isDurable: true,
        journal: .separate,
        expiresByItself: true
    ) { clock in
        let connection = try await NATSServer.shared.connection()
        let jetStream = JetStream(connection)
        let log = NATSLog(jetStream).sealed(of: 0)
        let changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: try ClusterFixture.node))
        let partitions = try #require(Partitions(count: 1))
        let streams = ClusterStreams(jetStream, replicas: 1)
        let cluster = try await streams.open(partitions, at: clock.now(), changes)
        // A server on a busy machine answers late; every write that shall fail takes so long, too.
        return try await ClusterFixture(
            log: log.of(cluster.incarnation),
            cluster: cluster,
            clock: clock,
            deadline: .seconds(10)
        ) {
            for stream in LogStream.all(of: partitions) { try? await jetStream.deleteStream(stream.name) }
            await connection.close()
        }
    }
}

/// The stores of a node on a log, with a journal in memory.
private final class ClusterFixture: StoreFixture {
    static var node: NodeName {
        get throws { try #require(NodeName("a")) }
    }

    private let log: InterruptedLog
    private let cluster: ClusterRecord
    private let clock: any WallClock
    private let deadline: Duration
    private let journal: MemoryStore
    private let current: Mutex<ClusterStore>
    private let end: @Sendable () async -> Void

    var store: AnyStore { current.withLock { $0 } }

    init(
        log: any ReplicatedLog,
        cluster: ClusterRecord,
        clock: any WallClock,
        deadline: Duration = .seconds(2),
        end: @escaping @Sendable () async -> Void = {}
    ) async throws {
        self.log = InterruptedLog(log)
        self.cluster = cluster
        self.clock = clock
        self.deadline = deadline
        self.end = end
        journal = MemoryStore(clock: clock)
        current = Mutex(
            try await ClusterFixture.open(self.log, cluster, clock: clock, deadline: deadline, journal: journal)
        )
    }

    private static func open(
        _ log: any ReplicatedLog,
        _ cluster: ClusterRecord,
        clock: any WallClock,
        deadline: Duration,
        journal: any JournalStore
    ) async throws -> ClusterStore {
        var configuration = ClusterMailboxConfiguration()
        configuration.deadline = deadline
        configuration.retry = deadline / 40
        let store = ClusterStore(
            configuration: configuration,
            log: log,
            cluster: cluster,
            own: ClaimRecord(node: try node, incarnation: .random(in: 0 ... .max)),
            journal: journal,
            clock: clock,
            scheduler: EventLoopScheduler(MultiThreadedEventLoopGroup.singleton.next()),
            logger: .silent
        )
        try await store.load()
        return store
    }

    func restart() async throws {
        let store = try await ClusterFixture.open(log, cluster, clock: clock, deadline: deadline, journal: journal)
        current.withLock { current in
            current.close()
            current = store
        }
    }

    func setFailsWrites(_ fails: Bool) {
        log.isInterrupted.withLock { $0 = fails }
        journal.setFailsWrites(fails)
    }

    func close() async {
        current.withLock { $0.close() }
        await end()
    }
}

/// A log that takes nothing for a while, and can be read.
private final class InterruptedLog: ReplicatedLog {
    let isInterrupted = Mutex(false)
    private let log: any ReplicatedLog

    init(_ log: any ReplicatedLog) {
        self.log = log
    }

    func append(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (AppendOutcome) -> Void) {
        if isInterrupted.withLock({ $0 }) { done(.notSent) } else { log.append(message, to: stream, done) }
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        log.read(subjects, in: stream, atLeast: bound, done)
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        log.follow(filters, in: stream, after: sequence, receive)
    }
}
