import CoreMetrics
import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldStores
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// A service's place in its cluster: the connection to the engine, and the stores on it.
package final class ClusterNode: Sendable {
    let name: NodeName
    let store: ClusterStore
    let link: EngineLink
    /// The log of the cluster, sealed.
    let log: any ReplicatedLog
    /// The nodes of the cluster.
    let nodes: NodeList
    private let membership: NodeMembership
    private let messages: NATSNodeMessages
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
    private let states = NodeStates()
    private let silence = NodeSilence()
    private let setAside: SetAside

    private init(
        name: NodeName,
        store: ClusterStore,
        link: EngineLink,
        log: any ReplicatedLog,
        setAside: SetAside,
        nodes: NodeList,
        membership: NodeMembership,
        messages: NATSNodeMessages,
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
        self.log = log
        self.setAside = setAside
        self.nodes = nodes
        self.membership = membership
        self.messages = messages
        self.keeping = keeping
        self.trust = trust
        self.checks = checks
        self.streams = streams
        followed = FollowedStreams(streams)
        self.folder = folder
        self.file = Mutex(file)
        self.logger = logger
    }

    /// Connects to the servers, checks them, and joins the other nodes.
    /// - Parameters:
    ///   - configuration: The settings of the cluster.
    ///   - folder: The data folder of the node.
    ///   - journal: The node's own journal.
    ///   - hostnames: The names for the server certificate.
    ///   - listening: Where the service listens.
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
        listening: [String],
        clock: any WallClock,
        manager: ServiceManager,
        logger: Logger
    ) async throws -> ClusterNode {
        let name = try configuration.nodeName()
        guard let partitions = Partitions(count: configuration.partitions) else {
            throw CommandError(.configuration, "cluster-partitions is out of range")
        }
        let hasDevices = try await ClusterStart.checkDevices(of: journal, folder)
        let key = try NodeKey(configuration, folder)
        let step: @Sendable (String) -> Void = { text in
            manager.status(text)
            logger.info("\(text)")
        }
        step("connecting to NATS")
        let link = try EngineLink(configuration, logger: logger)
        return try await link.starting {
            var file = try NodeFile.read(folder)
            try await link.waitUntilConnected()
            let checks = EngineChecks(configuration: configuration, jetStream: link.jetStream, clock: clock)
            step("checking the NATS servers")
            try ClusterStart.refuse(try await ClusterStart.faults(checks, onStep: step), logger)
            let streams = LogStream.all(of: partitions)
            let before = try await ClusterStart.lasting(streams, &file.seen, checks, onStep: step)
            if configuration.acceptsLoss {
                for loss in before { logger.warning("starting all the same", metadata: ["loss": "\(loss.text)"]) }
                file.seen = SeenStreams()
                file.note(nil, key.seal)
            } else {
                try ClusterStart.refuse(before, logger)
            }
            let setAside = SetAside(logger)
            let first = SealedLog(NATSLog(link.jetStream), key.seal, setAside)
            let streamSet = ClusterStreams(link.jetStream, replicas: configuration.replicas)
            let scheduler = EventLoopScheduler(link.connection.eventLoop)
            step("checking the streams of the cluster")
            let known = file.cluster(key.seal)
            let cluster = try await ClusterStart.onceReadable(link, onStep: step) {
                try await key.opening {
                    try await streamSet.open(
                        partitions,
                        mayBeNew: !hasDevices,
                        known: known,
                        at: clock.now(),
                        RecordChanges(log: first, barriers: LogBarriers(log: first, node: name)),
                        keepKey: { try key.keep(in: folder) }
                    )
                }
            }
            file.note(cluster, key.seal)
            let log = first.of(cluster.incarnation)
            let barriers = LogBarriers(log: log, node: name)
            let changes = RecordChanges(log: log, barriers: barriers)
            try ClusterStart.refuse(await EngineSelfTest(log, node: name).run().map { [$0] } ?? [], logger)
            let entry = TrustEntry(
                configuration: configuration,
                folder: folder,
                key: key,
                hostnames: hostnames,
                listening: listening,
                clock: clock,
                step: step,
                logger: logger
            )
            let trust = try await ClusterStart.onceReadable(link, onStep: step) {
                try await entry.enter(
                    TrustEntry.Connection(log: log, barriers: barriers, changes: changes, scheduler: scheduler)
                )
            }
            let started = clock.now()
            let own = NodeRecord(
                node: name,
                folder: file.folder,
                incarnation: NodeRecord.makeIncarnation(at: started),
                version: Version.number,
                started: started,
                newestTokenKey: try trust.newestTokenKey()
            )
            let membership = NodeMembership(log: log, barriers: barriers, own: own) {
                (try? trust.newestTokenKey()) ?? own.newestTokenKey
            }
            // From here on a loss is noticed, also by a node that ends at once.
            _ = await checks.look(streams, &file.seen)
            try file.write(folder)
            try await ClusterStart.take(membership, onStep: step)
            let keeping = Task { try await membership.keep() }
            step("reading the cluster's records")
            let messages = try key.messages(of: name, in: cluster.incarnation, link, setAside)
            let nodes = NodeList(own: own.claims, log: log, barriers: barriers, scheduler: scheduler)
            let store = ClusterStore(
                log: log,
                cluster: cluster,
                own: own.claims,
                messages: messages.exchange,
                nodes: nodes,
                trust: trust,
                journal: journal,
                clock: clock,
                scheduler: scheduler,
                logger: logger
            )
            do {
                try await ClusterStart.onceReadable(link, onStep: step) {
                    try await nodes.start()
                    try await store.load()
                    // Another node may have changed it while this one waited.
                    try await trust.catchUp()
                }
                try membership.check()
            } catch {
                keeping.cancel()
                await membership.leave()
                throw error
            }
            return ClusterNode(
                name: name,
                store: store,
                link: link,
                log: log,
                setAside: setAside,
                nodes: nodes,
                membership: membership,
                messages: messages,
                keeping: keeping,
                trust: trust,
                checks: checks,
                streams: streams,
                folder: folder,
                file: file,
                logger: logger
            )
        }
    }

    // MARK: - Running

    /// The reasons why the cluster takes no notifications now.
    var problems: [String] {
        if let problem = link.problem { return ["no NATS server can be used (\(problem)): providers get 503"] }
        let leaderless = leaderless.withLock { $0 }
        return leaderless == 0
            ? FollowedStreams.problem(lags).map { [$0] } ?? []
            : [
                "\(leaderless) streams have no leader at \(link.serverName): providers get 503; if it stays so, a majority of the "
                    + "NATS servers is gone, or they do not reach each other (herald cluster status)"
            ]
    }

    /// Faults of the cluster's servers and nodes, which every node sees.
    var warningsOfAll: [String] {
        findings.withLock { $0.map(\.line) } + nodes.all.compactMap { NodeStates.warning($0) }
    }

    /// Faults of this node's part in the cluster.
    var warningsOfNode: [String] {
        let trust = trust.problem.map { "trust is not in common with the other nodes now: \($0)" }
        return [trust, FollowedStreams.warning(lags), setAside.warning].compactMap(\.self) + self.trust.tooLongFiles
    }

    /// The age of what this node knows of each stream that it follows.
    private var lags: [(stream: LogStream, lag: Duration)] {
        store.lags + [(.meta, nodes.lag), (.trust, trust.lag)]
    }

    /// The newest token key that each other live node opens, by its record.
    var liveTokenKeys: [NodeName: UInt32] {
        let live = nodes.all.filter { $0.state == .serving && $0.record.node != name }
        return Dictionary(live.map { ($0.record.node, $0.record.newestTokenKey) }) { first, _ in first }
    }

    /// The questions to other nodes, and of them.
    var questions: NodeQuestions { NodeQuestions(exchange: messages.exchange) }

    /// Whether a device is connected to another node.
    func isHeldElsewhere(_ device: DeviceNumber) -> Bool { store.directory.isHeldElsewhere(device) }

    /// - Throws: If another process has taken this node's name.
    func check() throws { try membership.check() }

    /// Sets the gauges.
    func measure() {
        connected.record(link.problem == nil ? 1 : 0)
        store.rings.measure()
        followed.measure(lags)
        states.measure(nodes.all)
        faults.record(findings.withLock { $0.count })
    }

    /// Dismisses all devices when this node has given no sign of life for ``NodeNameMachine/silence``.
    ///
    /// The other nodes may have stopped to ring: devices are to look for them, and at once.
    private func watchSigns(_ dismiss: @Sendable () -> Void) async {
        while !Task.isCancelled {
            if membership.takeLongestGap() > NodeNameMachine.silence { dismiss() }
            try? await Task.sleep(for: NodeNameMachine.look)
        }
    }

    /// Watches servers and streams.
    /// - Throws: ``CommandError/Code/refused`` when they have lost what they had acknowledged.
    private func watch() async throws {
        var looksWithLoss = 0
        while !Task.isCancelled {
            do { try await Task.sleep(for: ClusterStart.look) } catch { return }
            try store.check()
            try FollowedStreams.check(lags)
            silence.look(at: nodes.all, logger)
            guard link.problem == nil else { continue }
            var seen = file.withLock { $0.seen }
            let before = seen
            let (states, ofStreams) = await checks.look(streams, &seen)
            let loss = ofStreams.first { $0.severity == .refusal }
            looksWithLoss = loss == nil ? 0 : looksWithLoss + 1
            let lasting = ofStreams.filter { $0.severity != .refusal || looksWithLoss >= ClusterStart.lossWarning }
            let found = await checks.servers(of: states.values) + lasting
            leaderless.withLock { $0 = StreamCheck.leaderless(states.values).count }
            store.mailbox.setCount(max(0, records(in: states) - store.rings.claimCount))
            let isNew = findings.withLock { findings in
                defer { findings = found }
                return findings != found
            }
            if isNew, found.isEmpty { logger.notice("the NATS servers are sound again") }
            if isNew { for finding in found { logger.warning("\(finding.line)") } }
            // Servers that are down have lost nothing, and come back.
            if let loss, looksWithLoss >= ClusterStart.lossLooks { throw CommandError(.refused, loss.line) }
            if seen != before { save(seen) }
        }
    }

    /// The notifications and claims in the mailbox's streams, which have a barrier of each node.
    private func records(in states: [LogStream: StreamInfo]) -> Int {
        let barriers = nodes.all.count
        return states.reduce(0) { sum, state in
            guard case .mailbox = state.key else { return sum }
            return sum + max(0, Int(clamping: state.value.state.messages) - barriers)
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
        endFollowing()
        keeping.cancel()
        _ = await keeping.result
        await membership.leave()
        await link.connection.close()
    }

    private func endFollowing() {
        messages.close()
        store.close()
        nodes.close()
        trust.close()
    }

    /// Fails after a time all that the servers have not answered by then.
    ///
    /// Returns at once.
    func abandon(after time: Duration) {
        link.connection.eventLoop.scheduleTask(in: TimeAmount(time)) { [self] in
            endFollowing()
            link.connection.close(after: .zero)
        }
    }
}

extension ClusterNode {
    /// Keeps the place in the cluster until the service stops, and leaves it.
    /// - Parameter dismiss: Dismisses all devices.
    /// - Throws: When another process has taken this node's name, or the servers have lost something.
    func run(dismiss: @escaping @Sendable () -> Void) async throws {
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
                    group.addTask { try await self.watch() }
                    group.addTask { await self.watchSigns(dismiss) }
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
