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
    private let place: NodePlace
    private let messages: NATSNodeMessages
    /// The trust folder, which has everything that the cluster shares.
    let trust: TrustSync
    private let health: ClusterHealth
    private let connected = Gauge(label: "herald_cluster_connected")
    private let trustShared = Gauge(label: "herald_cluster_trust_shared")
    private let followed: FollowedStreams
    private let states = NodeStates()
    private let setAside: SetAside

    init(
        _ entrance: ClusterEntrance,
        _ site: ClusterEntrance.Site,
        store: ClusterStore,
        nodes: NodeList,
        place: NodePlace,
        messages: NATSNodeMessages,
        trust: TrustSync,
        file: NodeFile
    ) {
        name = entrance.name
        link = entrance.link
        log = site.log
        setAside = entrance.setAside
        followed = FollowedStreams(entrance.streams)
        health = ClusterHealth(entrance, file)
        self.store = store
        self.nodes = nodes
        self.place = place
        self.messages = messages
        self.trust = trust
    }

    /// Connects to the servers, checks them, and joins the other nodes.
    ///
    /// `hostnames` are for the server certificate, and `addresses` are what devices are told. The manager and the
    /// logger get each step, and the logger gets warnings, too.
    /// - Returns: The node, whose stores are loaded.
    /// - Throws: An error that says what is wrong and how to mend it.
    static func join(
        _ configuration: ClusterConfiguration,
        folder: DataFolder,
        journal: SQLiteStore,
        hostnames: [String],
        listening: [String],
        addresses: [ServiceEndpoint],
        clock: any WallClock,
        manager: ServiceManager,
        logger: Logger
    ) async throws -> ClusterNode {
        let hasDevices = try await ClusterStart.checkDevices(of: journal, folder)
        let entrance = try ClusterEntrance(
            configuration,
            folder: folder,
            journal: journal,
            clock: clock,
            logger: logger
        ) { text in
            manager.status(text)
            logger.info("\(text)")
        }
        return try await entrance.link.starting {
            var file = try NodeFile.read(folder)
            try await entrance.checkServers(&file)
            let site = try await entrance.openStreams(&file, mayBeNew: !hasDevices)
            let trust = try await entrance.enterTrust(
                site,
                hostnames: hostnames,
                listening: listening,
                addresses: addresses
            )
            let place = try await entrance.takeName(site, trust, &file)
            return try await closingOnFailure(place.leave) {
                try await entrance.load(site, trust: trust, place: place, file: file)
            }
        }
    }

    // MARK: - Running

    /// The reasons why the cluster takes no notifications now.
    var problems: [String] {
        if let problem = link.problem { return ["no NATS server can be used (\(problem)): providers get 503"] }
        let leaderless = health.leaderless
        return leaderless == 0
            ? FollowedStreams.problem(lags).map { [$0] } ?? []
            : [
                "\(leaderless) streams have no leader at \(link.serverName): providers get 503 until the servers have elected one, "
                    + "which takes seconds; if it stays so, herald cluster status says which servers are missing"
            ]
    }

    /// Faults of the cluster's servers and nodes, which every node sees.
    var warningsOfAll: [String] {
        health.findings.map(\.line) + nodes.all.compactMap { NodeStates.warning($0) }
    }

    /// Faults of this node's part in the cluster.
    var warningsOfNode: [String] {
        let trust = trust.problem.map { "trust is not in common with the other nodes now: \($0)" }
        return [trust, FollowedStreams.warning(lags), setAside.warning].compactMap(\.self) + self.trust.tooLongFiles
    }

    /// The age of what this node knows of each stream that it follows.
    var lags: [(stream: LogStream, lag: Duration)] {
        store.lags + [(.meta, nodes.lag), (.trust, trust.lag)]
    }

    /// The newest token key that each other live node opens, by its record.
    var liveTokenKeys: [NodeName: UInt32] {
        let live = nodes.all.filter { $0.state == .serving && $0.record.node != name }
        return Dictionary(live.map { ($0.record.node, $0.record.newestTokenKey) }) { first, _ in first }
    }

    /// The questions to other nodes, and of them.
    var questions: NodeQuestions { NodeQuestions(exchange: messages.exchange) }

    /// The other node to which a device is connected.
    func otherHolder(of device: DeviceNumber) -> NodeName? { store.directory.otherHolder(of: device) }

    /// - Throws: If another process has taken this node's name.
    func check() throws { try place.membership.check() }

    /// Sets the gauges.
    func measure() {
        connected.record(link.problem == nil ? 1 : 0)
        trustShared.record(trust.problem == nil && trust.lag <= ClusterLimits.followerFreshness ? 1 : 0)
        store.rings.measure()
        followed.measure(lags)
        states.measure(nodes.all)
        health.measure()
    }

    /// Dismisses all devices when this node has given no sign of life for ``NodeNameMachine/silence``.
    ///
    /// The other nodes may have stopped to ring: devices are to look for them, and at once.
    private func watchSigns(_ dismiss: @Sendable () -> Void) async {
        while !Task.isCancelled {
            if place.membership.takeLongestGap() > NodeNameMachine.silence { dismiss() }
            try? await Task.sleep(for: NodeNameMachine.look)
        }
    }

    /// Ends this node's part in the cluster; after everything that stores has stopped.
    func close() async {
        endFollowing()
        await place.leave()
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
    /// Keeps the place in the cluster until the service stops, and leaves it; `dismiss` dismisses all devices.
    /// - Throws: When another process has taken this node's name, or the servers have lost something.
    func run(dismiss: @escaping @Sendable () -> Void) async throws {
        do {
            try await cancelWhenGracefulShutdown {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        // The end of the service ends it too.
                        try await withTaskCancellationHandler {
                            try await self.place.keeping.value
                        } onCancel: {
                            self.place.keeping.cancel()
                        }
                    }
                    group.addTask { try await self.health.watch(self) }
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
