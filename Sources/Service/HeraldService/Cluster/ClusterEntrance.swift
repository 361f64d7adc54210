import HeraldCluster
import HeraldModel
import HeraldNATS
import HeraldStores
import Logging

/// The steps by which a node joins its cluster, in their order.
struct ClusterEntrance: Sendable {
    let configuration: ClusterConfiguration
    let folder: DataFolder
    let journal: SQLiteStore
    let name: NodeName
    let partitions: Partitions
    /// The key of the cluster.
    let key: NodeKey
    let link: EngineLink
    let checks: EngineChecks
    let setAside: SetAside
    let clock: any WallClock
    let logger: Logger
    /// Gets each step.
    let step: @Sendable (String) -> Void

    /// Begins to connect to the servers.
    /// - Throws: ``CommandError`` for settings that cannot be used.
    init(
        _ configuration: ClusterConfiguration,
        folder: DataFolder,
        journal: SQLiteStore,
        clock: any WallClock,
        logger: Logger,
        step: @escaping @Sendable (String) -> Void
    ) throws {
        self.configuration = configuration
        self.folder = folder
        self.journal = journal
        self.clock = clock
        self.logger = logger
        self.step = step
        name = try configuration.nodeName()
        guard let partitions = Partitions(count: configuration.partitions) else {
            throw CommandError(.configuration, "cluster-partitions is out of range")
        }
        self.partitions = partitions
        key = try NodeKey(configuration, folder)
        step("connecting to NATS")
        link = try EngineLink(configuration, logger: logger)
        checks = EngineChecks(configuration: configuration, jetStream: link.jetStream, clock: clock)
        setAside = SetAside(logger)
    }

    var streams: [LogStream] { LogStream.all(of: partitions) }
    private var scheduler: EventLoopScheduler { EventLoopScheduler(link.connection.eventLoop) }

    /// The cluster, and the ways to its log.
    struct Site: Sendable {
        let cluster: ClusterRecord
        let log: SealedLog
        let barriers: LogBarriers
        let changes: RecordChanges
    }

    /// Waits for the servers, and refuses those that are unsound or have lost something.
    func checkServers(_ file: inout NodeFile) async throws {
        try await link.waitUntilConnected()
        step("checking the NATS servers")
        try ClusterStart.refuse(try await ClusterStart.faults(checks, onStep: step), logger)
        let losses = try await ClusterStart.lasting(streams, &file.seen, checks, onStep: step)
        guard configuration.acceptsLoss else { return try ClusterStart.refuse(losses, logger) }
        for loss in losses { logger.warning("starting all the same", metadata: ["loss": "\(loss.text)"]) }
        file.seen = SeenStreams()
        file.note(nil, key.seal)
    }

    /// Opens the streams of the cluster, or makes them if there is none and the folder may begin a cluster.
    ///
    /// The node's file gets the cluster's facts.
    /// - Returns: The streams, and what follows them.
    /// - Throws: ``CommandError`` with what to do.
    func openStreams(_ file: inout NodeFile, mayBeNew: Bool) async throws -> Site {
        let first = SealedLog(NATSLog(link.jetStream), key.seal, setAside)
        let streamSet = ClusterStreams(link.jetStream, replicas: configuration.replicas)
        step("checking the streams of the cluster")
        let known = file.cluster(key.seal)
        let cluster = try await ClusterStart.onceReadable(link, onStep: step) {
            try await key.opening {
                try await streamSet.open(
                    partitions,
                    mayBeNew: mayBeNew,
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
        try ClusterStart.refuse(await EngineSelfTest(log, node: name).run().map { [$0] } ?? [], logger)
        return Site(
            cluster: cluster,
            log: log,
            barriers: barriers,
            changes: RecordChanges(log: log, barriers: barriers)
        )
    }

    /// Brings the trust folder up to what the cluster has in common.
    func enterTrust(
        _ site: Site,
        hostnames: [String],
        listening: [String],
        addresses: [ServiceEndpoint]
    ) async throws -> TrustSync {
        let entry = TrustEntry(
            configuration: configuration,
            folder: folder,
            key: key,
            hostnames: hostnames,
            listening: listening,
            addresses: addresses,
            clock: clock,
            step: step,
            logger: logger
        )
        let connection = TrustEntry.Connection(
            log: site.log,
            barriers: site.barriers,
            changes: site.changes,
            scheduler: scheduler
        )
        return try await ClusterStart.onceReadable(link, onStep: step) { try await entry.enter(connection) }
    }

    /// Takes the node's name, and keeps it from then on.
    func takeName(_ site: Site, _ trust: TrustSync, _ file: inout NodeFile) async throws -> NodePlace {
        let started = clock.now()
        let own = NodeRecord(
            node: name,
            folder: file.folder,
            incarnation: NodeRecord.makeIncarnation(at: started),
            version: Version.number,
            started: started,
            newestTokenKey: try trust.newestTokenKey()
        )
        let membership = NodeMembership(log: site.log, barriers: site.barriers, own: own) {
            (try? trust.newestTokenKey()) ?? own.newestTokenKey
        }
        // From here on a loss is noticed, also by a node that ends at once.
        _ = await checks.look(streams, &file.seen)
        try file.write(folder)
        try await ClusterStart.take(membership, onStep: step)
        return NodePlace(own: own, membership: membership, keeping: Task { try await membership.keep() })
    }

    /// Loads the records of the cluster.
    func load(_ site: Site, trust: TrustSync, place: NodePlace, file: NodeFile) async throws -> ClusterNode {
        step("reading the cluster's records")
        let claims = place.own.claims
        let messages = try key.messages(of: name, in: site.cluster.incarnation, link, setAside)
        let nodes = NodeList(own: claims, log: site.log, barriers: site.barriers, scheduler: scheduler)
        let store = ClusterStore(
            log: site.log,
            cluster: site.cluster,
            own: claims,
            messages: messages.exchange,
            nodes: nodes,
            trust: trust,
            journal: journal,
            clock: clock,
            scheduler: scheduler,
            logger: logger
        )
        try await ClusterStart.onceReadable(link, onStep: step) {
            try await nodes.start()
            try await store.load()
            // Another node may have changed it while this one waited.
            try await trust.catchUp()
        }
        try place.membership.check()
        return ClusterNode(
            self,
            site,
            store: store,
            nodes: nodes,
            place: place,
            messages: messages,
            trust: trust,
            file: file
        )
    }
}

/// The name of a node in its cluster, which its record keeps.
struct NodePlace: Sendable {
    let own: NodeRecord
    let membership: NodeMembership
    /// Renews this node's record, from the moment that it has one.
    let keeping: Task<Void, any Error>

    /// Gives the name up.
    func leave() async {
        keeping.cancel()
        _ = await keeping.result
        await membership.leave()
    }
}
