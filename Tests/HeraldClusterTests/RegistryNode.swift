import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

/// The stores, post office and registry of a node on a log that it shares with others.
struct RegistryNode {
    let store: ClusterStore
    let postOffice: PostOffice
    let registry: Registry
    private let clock: ManualClock

    init(
        _ name: String,
        _ log: any ReplicatedLog,
        _ clock: ManualClock,
        scheduler: any ClusterScheduler = QueueScheduler(standsStill: true),
        limits: RegistryConfiguration = RegistryConfiguration()
    ) async throws {
        let node = try #require(NodeName(name))
        let changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: node))
        let partitions = try #require(Partitions(count: 2))
        store = ClusterStore(
            log: log,
            cluster: try await ClusterIdentity.open(partitions, at: clock.now(), changes),
            own: ClaimRecord(node: node, incarnation: .random(in: 0 ... .max)),
            journal: MemoryStore(clock: clock),
            clock: clock,
            scheduler: scheduler,
            logger: .silent
        )
        try await store.load()
        var configuration = PostOfficeConfiguration()
        configuration.storesFirst = true
        postOffice = PostOffice(
            configuration: configuration,
            clock: clock,
            store: store,
            directory: store.directory,
            confirmations: RefusalConfirmations(shared: store, clock: clock),
            logger: .silent
        )
        store.report(to: postOffice)
        registry = Registry(
            configuration: limits,
            store: store,
            postOffice: postOffice,
            directory: store.directory,
            clock: clock,
            logger: .silent
        )
        self.clock = clock
        try await registry.load()
    }

    /// Posts a notification with the token of a registration.
    func post(to registration: Registration, _ completion: Completion? = nil) -> PostDecision {
        let id = NotificationID.random()
        let notification = Notification(
            id: id,
            uniqueID: id,
            slot: registration.slot,
            received: clock.now(),
            storedUntil: clock.now() + .seconds(3600),
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: [123, 125]
        )
        return postOffice.post(Envelope(notification, generation: registration.generation, completion: completion))
    }
}

/// A device's connection that shows what it is sent.
final class WitnessLink: DeviceLink {
    private let delivered: AsyncStream<Delivery>.Continuation
    let deliveries: AsyncStream<Delivery>

    init() {
        (deliveries, delivered) = AsyncStream.makeStream()
    }

    func deliver(_ delivery: Delivery) { delivered.yield(delivery) }
    func dismiss(_ reason: DismissalReason) { delivered.finish() }
}

/// The answers to providers.
final class WitnessCompletions: CompletionHandler {
    private let settled: AsyncStream<CompletionOutcome>.Continuation
    private let outcomes: AsyncStream<CompletionOutcome>

    init() {
        (outcomes, settled) = AsyncStream.makeStream()
    }

    func settle(_ number: UInt64, _ outcome: CompletionOutcome) { settled.yield(outcome) }

    /// The next answer.
    func next() async -> CompletionOutcome? { await outcomes.first { _ in true } }
}
