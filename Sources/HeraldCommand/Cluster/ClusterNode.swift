import CoreMetrics
import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldStores
import Logging
import ServiceLifecycle
import Synchronization

/// A service's place in its cluster: the connection to the engine, and the stores on it.
final class ClusterNode: Sendable {
    let name: NodeName
    let store: ClusterStore
    private let link: EngineLink
    private let active: ActiveNode
    /// Renews this node's record, from the moment that it has one.
    private let keeping: Task<Void, any Error>
    /// The trust folder, which has everything that the cluster shares.
    let trust: TrustSync
    private let checks: EngineChecks
    private let streams: [LogStream]
    private let folder: DataFolder
    private let file: Mutex<NodeFile>
    private let leaderless = Mutex(0)
    private let findings = Mutex<[ClusterFinding]>([])
    private let logger: Logger
    private let connected = Gauge(label: "herald_cluster_connected")
    private let faults = Gauge(label: "herald_cluster_faults")
    private let followed: FollowedStreams

    /// The time between two looks at the servers and streams.
    private static let look = Duration.seconds(5)
    /// The time in which servers that have just started must serve reads.
    private static let firstRead = Duration.seconds(60)
    /// The looks in a row that must show a loss: a paused leader knows after ten seconds that it is none.
    private static let lossLooks = 6

    private init(
        name: NodeName,
        store: ClusterStore,
        link: EngineLink,
        active: ActiveNode,
        keeping: Task<Void, any Error>,
        trust: TrustSync,
        checks: EngineChecks,
        streams: [LogStream],
        folder: DataFolder,
        file: NodeFile,
        logger: Logger
    ) {
        self.name = name
        self.store = store
        self.link = link
        self.active = active
        self.keeping = keeping
        self.trust = trust
        self.checks = checks
        self.streams = streams
        followed = FollowedStreams(streams)
        self.folder = folder
        self.file = Mutex(file)
        self.logger = logger
    }

    /// Connects to the servers, checks them, and becomes the node that serves.
    /// - Parameters:
    ///   - configuration: The settings of the cluster.
    ///   - folder: The data folder of the node.
    ///   - journal: The node's own journal.
    ///   - hostnames: The names for the server certificate.
    ///   - clock: The clock of the service.
    ///   - manager: Gets each step.
    ///   - logger: Gets each step, and warnings.
    /// - Returns: The node, whose stores are loaded.
    /// - Throws: An error that says what is wrong and how to mend it.
    static func join(
        _ configuration: ClusterConfiguration,
        folder: DataFolder,
        journal: SQLiteStore,
        hostnames: [String],
        clock: any WallClock,
        manager: ServiceManager,
        logger: Logger
    ) async throws -> ClusterNode {
        let name = try configuration.nodeName()
        guard let partitions = Partitions(count: configuration.partitions) else {
            throw CommandError(.configuration, "cluster-partitions is out of range")
        }
        var file = try NodeFile.read(folder)
        let step: @Sendable (String) -> Void = { text in
            manager.status(text)
            logger.info("\(text)")
        }
        step("connecting to NATS")
        let link = try EngineLink(configuration, logger: logger)
        do {
            try await link.waitUntilConnected()
            let checks = EngineChecks(configuration: configuration, jetStream: link.jetStream, clock: clock)
            step("checking the NATS servers")
            try refuse(await checks.servers(), logger)
            let streams = LogStream.all(of: partitions)
            let before = await lasting(streams, &file.seen, checks, onStep: step)
            if configuration.acceptsLoss {
                for loss in before { logger.warning("starting all the same", metadata: ["loss": "\(loss.text)"]) }
                file.seen = SeenStreams()
            } else {
                try refuse(before, logger)
            }
            let log = NATSLog(link.jetStream)
            let barriers = LogBarriers(log: log, node: name)
            let changes = RecordChanges(log: log, barriers: barriers)
            let streamSet = ClusterStreams(link.jetStream, replicas: configuration.replicas)
            let scheduler = EventLoopScheduler(link.connection.eventLoop)
            step("checking the streams of the cluster")
            let cluster = try await onceReadable(onStep: step) {
                try await streamSet.open(partitions, at: clock.now(), changes)
            }
            try refuse(await EngineSelfTest(log, node: name).run().map { [$0] } ?? [], logger)
            let entry = TrustEntry(
                configuration: configuration,
                folder: folder,
                hostnames: hostnames,
                clock: clock,
                step: step,
                logger: logger
            )
            let trust = try await onceReadable(onStep: step) {
                try await entry.enter(
                    TrustEntry.Connection(log: log, barriers: barriers, changes: changes, scheduler: scheduler)
                )
            }
            let active = ActiveNode(
                log: log,
                barriers: barriers,
                own: ActiveNodeRecord(node: name, folder: file.folder)
            )
            // From here on a loss is noticed, also by a node that ends at once.
            _ = await checks.look(streams, &file.seen)
            try file.write(folder)
            let isWaiting = Atomic(false)
            try await active.take { other in
                guard !isWaiting.exchange(true, ordering: .relaxed) else { return }
                let seconds = ActiveNodeMachine.silence.components.seconds
                step(
                    other.map { "the node \($0.text) has not signed off: waiting \(seconds) s for a sign of life" }
                        ?? "waiting until the NATS servers serve reads and writes"
                )
            }
            let keeping = Task { try await active.keep() }
            step("reading the cluster's records")
            let store = ClusterStore(
                log: log,
                cluster: cluster,
                own: ClaimRecord(node: name, incarnation: .random(in: 0 ... .max)),
                journal: journal,
                clock: clock,
                scheduler: scheduler,
                logger: logger
            )
            do {
                try await store.load()
                // Another node may have changed it while this one waited.
                try await trust.catchUp()
                try active.check()
            } catch {
                keeping.cancel()
                await active.release()
                throw error
            }
            return ClusterNode(
                name: name,
                store: store,
                link: link,
                active: active,
                keeping: keeping,
                trust: trust,
                checks: checks,
                streams: streams,
                folder: folder,
                file: file,
                logger: logger
            )
        } catch {
            await link.connection.close()
            throw error
        }
    }

    /// Repeats work until the servers answer: for a while after their own start, they serve no reads.
    /// - Throws: The error of the work, or ``CommandError/Code/unreachable`` after ``firstRead``.
    private static func onceReadable<Value: Sendable>(
        onStep step: (String) -> Void,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now + firstRead
        var isFirst = true
        while true {
            do {
                return try await work()
            } catch  where isTemporary(error) {
                guard .now < end else {
                    throw CommandError(
                        .unreachable,
                        "the NATS servers do not serve their streams: start those that are down (herald cluster status)"
                    )
                }
                if isFirst {
                    step("the NATS servers serve no reads yet: waiting up to \(firstRead.components.seconds) s")
                }
                isFirst = false
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private static func isTemporary(_ error: any Error) -> Bool {
        switch error {
        case LogFailure.unavailable, LogFailure.behind, JetStreamError.failed: true
        case JetStreamError.refused(let refusal): refusal.status == JetStreamRefusal.unavailable
        default: false
        }
    }

    /// The losses that the streams show again and again: a server that was the leader, and was paused, shows old states for
    /// some seconds.
    private static func lasting(
        _ streams: [LogStream],
        _ seen: inout SeenStreams,
        _ checks: EngineChecks,
        onStep step: (String) -> Void
    ) async -> [ClusterFinding] {
        for number in 1..<lossLooks {
            let losses = await checks.look(streams, &seen).findings.filter { $0.severity == .refusal }
            if losses.isEmpty { return [] }
            if number == 1 {
                let seconds = look.components.seconds * Int64(lossLooks - 1)
                step("the NATS servers show less than they had: waiting \(seconds) s for one that has more")
            }
            try? await Task.sleep(for: look)
        }
        return await checks.look(streams, &seen).findings.filter { $0.severity == .refusal }
    }

    /// Logs warnings.
    /// - Throws: ``CommandError/Code/refused`` with the first refusal.
    private static func refuse(_ findings: [ClusterFinding], _ logger: Logger) throws {
        for finding in findings where finding.severity == .warning { logger.warning("\(finding.line)") }
        if let refusal = findings.first(where: { $0.severity == .refusal }) {
            throw CommandError(.configuration, refusal.line)
        }
    }

    // MARK: - Running

    /// The reasons why the cluster takes no notifications now.
    var problems: [String] {
        if let problem = link.problem { return ["no NATS server can be used (\(problem)): providers get 503"] }
        let leaderless = leaderless.withLock { $0 }
        return leaderless == 0
            ? FollowedStreams.problem(store.lags).map { [$0] } ?? []
            : ["\(leaderless) streams have no leader, since a majority of the NATS servers is gone: providers get 503"]
    }

    /// Faults that endanger what is stored, while the node serves.
    var warnings: [String] {
        let trust = trust.problem.map { "trust is not in common with the other nodes now: \($0)" }
        return findings.withLock { $0.map(\.line) } + [trust].compactMap(\.self)
    }

    /// The newest token key that each live node opens, by its record.
    var liveTokenKeys: [NodeName: UInt32] { [:] }

    /// - Throws: If another node has taken over.
    func check() throws { try active.check() }

    /// Sets the gauges.
    func measure() {
        connected.record(link.problem == nil ? 1 : 0)
        store.rings.measure()
        followed.measure(store.lags)
        faults.record(findings.withLock { $0.count })
    }

    /// Watches servers and streams.
    /// - Parameters:
    ///   - connected: The number of connected devices, each of which has a record in the mailbox's streams.
    ///   - dismiss: Dismisses all devices.
    /// - Throws: ``CommandError/Code/refused`` when they have lost what they had acknowledged.
    private func watch(_ connected: @Sendable () -> Int, _ dismiss: @Sendable () -> Void) async throws {
        var looksWithLoss = 0
        while !Task.isCancelled {
            do { try await Task.sleep(for: Self.look) } catch { return }
            try store.check()
            try FollowedStreams.check(store.lags)
            if active.timeSinceRenewal > ActiveNodeMachine.silence {
                // Another node may serve by now: devices are to look for it.
                dismiss()
            }
            guard link.problem == nil else { continue }
            var seen = file.withLock { $0.seen }
            let before = seen
            let (states, ofStreams) = await checks.look(streams, &seen)
            let found = await checks.servers(of: states.values) + ofStreams
            leaderless.withLock { $0 = StreamCheck.leaderless(states.values).count }
            store.mailbox.setCount(max(0, Self.records(in: states) - connected()))
            let isNew = findings.withLock { findings in
                defer { findings = found }
                return findings != found
            }
            if isNew, found.isEmpty { logger.notice("the NATS servers are sound again") }
            if isNew { for finding in found { logger.warning("\(finding.line)") } }
            // Servers that are down are no loss, and come back.
            let loss = ofStreams.first { $0.severity == .refusal }
            looksWithLoss = loss == nil ? 0 : looksWithLoss + 1
            if let loss, looksWithLoss >= Self.lossLooks { throw CommandError(.refused, loss.line) }
            if seen != before { save(seen) }
        }
    }

    /// The notifications and claims in the mailbox's streams, which have a barrier each.
    private static func records(in states: [LogStream: StreamInfo]) -> Int {
        states.reduce(0) { sum, state in
            if case .mailbox = state.key { sum + max(0, Int(clamping: state.value.state.messages) - 1) } else { sum }
        }
    }

    private func save(_ seen: SeenStreams) {
        let file = file.withLock { file in
            file.seen = seen
            return file
        }
        do {
            try file.write(folder)
        } catch {
            // The older state notices a loss too.
            logger.warning("could not note the state of the cluster", metadata: ["error": "\(error)"])
        }
    }

    /// Ends this node's part in the cluster; after everything that stores has stopped.
    func close() async {
        store.close()
        trust.close()
        keeping.cancel()
        _ = await keeping.result
        await active.release()
        await link.connection.close()
    }
}

extension ClusterNode {
    /// Keeps the place in the cluster until the service stops, and leaves it.
    /// - Parameters:
    ///   - connected: The number of connected devices.
    ///   - dismiss: Dismisses all devices.
    /// - Throws: When another node has taken over, or the servers have lost something.
    func run(
        connected: @escaping @Sendable () -> Int,
        dismiss: @escaping @Sendable () -> Void
    ) async throws {
        do {
            try await cancelWhenGracefulShutdown {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        // The end of the service ends it too.
                        try await withTaskCancellationHandler {
                            try await self.keeping.value
                        } onCancel: {
                            self.keeping.cancel()
                        }
                    }
                    group.addTask { try await self.watch(connected, dismiss) }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        } catch is CancellationError {
            // The service stops.
        }
        await close()
    }
}
