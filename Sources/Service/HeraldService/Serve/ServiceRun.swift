import Foundation
import HeraldActivation
package import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import ServiceLifecycle
package import UnixSignals

/// Runs a service: opens the listeners, prints their addresses, and runs until it is asked to stop.
package struct ServiceRun {
    package let assembly: ServiceAssembly
    package let metrics: PrometheusRegistry
    package let reload: ConfigurationReload
    package let hangups: UnixSignalsSequence
    /// The signals of a node of a cluster; nil for a service that stands alone.
    package let stop: StopSignals?
    /// Tells the operator a line: the addresses of the listeners, and `ready`.
    package let announce: @Sendable (String) -> Void

    package init(
        assembly: ServiceAssembly,
        metrics: PrometheusRegistry,
        reload: ConfigurationReload,
        hangups: UnixSignalsSequence,
        stop: StopSignals?,
        announce: @escaping @Sendable (String) -> Void
    ) {
        self.assembly = assembly
        self.metrics = metrics
        self.reload = reload
        self.hangups = hangups
        self.stop = stop
        self.announce = announce
    }

    /// - Throws: If a listener cannot be opened, or the store has failed permanently.
    package func run() async throws {
        let configuration = assembly.configuration
        let folder = assembly.folder
        let started = assembly.clock.now()
        // A killed service leaves its socket behind. We hold the folder's lock, so nobody listens on it.
        unlink(folder.controlSocketPath)
        let api: Int
        let device: Int
        let binary: (binary: Int, feedback: Int)
        let access: ConsoleAccess
        do {
            try assembly.cluster?.check()
            access = try makeAccess()
            device = try await assembly.courier.open()
            api = try await assembly.gateway.open()
            binary = try await assembly.binaryGateway.open()
        } catch {
            await assembly.close()
            throw error
        }
        let activation = assembly.activation(devicePort: device)
        let watch = TrustWatch(
            trust: assembly.trust,
            gateway: assembly.gateway,
            binaryGateway: assembly.binaryGateway,
            courier: assembly.courier,
            activation: activation,
            console: assembly.consoleTLS,
            alarm: RevocationAlarm(trust: assembly.trust, clock: assembly.clock, logger: assembly.logger),
            clock: assembly.clock,
            logger: assembly.logger
        )
        let clockWatch = ClockWatch(
            clock: assembly.clock,
            store: assembly.store,
            logger: assembly.logger
        ) { [assembly] in
            assembly.postOffice.releaseWithheld()
            assembly.courier.releaseWithheld()
        }
        var consoleConfiguration = ConsoleConfiguration(
            host: configuration.consoleHost,
            port: configuration.consolePort,
            socketPath: folder.controlSocketPath
        )
        consoleConfiguration.hostnames = configuration.hostnames
        consoleConfiguration.mode = configuration.consoleMode
        if configuration.letsSendersDrill { consoleConfiguration.drillsRole = .sender }
        consoleConfiguration.tls = assembly.consoleTLS
        consoleConfiguration.maximumConnections = configuration.consoleConnections
        let administration = ServiceAdministration(
            assembly: assembly,
            watch: watch,
            clockWatch: clockWatch,
            started: started
        )
        let search = ServiceSearch(assembly)
        let tallies = ServiceTallies(journal: assembly.journal, clock: assembly.clock, turns: search.turns)
        assembly.cluster?.questions.answer { [journal = assembly.journal] question, limit in
            try await journal.ownLines(question, limit: limit)
        } search: {
            try await search.page($0)
        } tallies: {
            try await tallies.ownTallies($0)
        } report: {
            administration.nodeReport
        }
        let gauges = ServiceGauges(assembly, administration)
        let live = LiveConsole(assembly, administration, search, metrics: metrics)
        let audit = AuditFile(folder: folder.auditPath, logger: assembly.logger)
        defer { audit.close() }
        var operations = AdminWork()
        administration.register(&operations)
        operations.register(journal: search)
        TallyRoutes(journal: tallies).register(&operations)
        CaughtRoutes(inbox: ServiceInbox(assembly), connections: consoleConfiguration.maximumConnections).register(
            &operations
        )
        SendRoutes(sender: ServiceSender(assembly, port: api)).register(&operations)
        ServiceTools(assembly).register(&operations)
        TokenRoute(registry: assembly.registry, postOffice: assembly.postOffice).register(&operations)
        TokenKeyRoute(
            seal: assembly.trust.seal,
            live: { [cluster = assembly.cluster] in cluster?.liveTokenKeys ?? [:] },
            started: started
        ).register(&operations)
        TrustSharingRoute(cluster: assembly.cluster).register(&operations)
        let console = try Console(
            configuration: consoleConfiguration,
            rows: AdminAPI.all,
            api: operations,
            health: administration.health,
            live: live,
            access: access,
            audit: audit,
            clock: ServiceClock(),
            metrics: metrics,
            readGauges: { gauges.read() },
            logger: assembly.logger
        )
        assembly.catcher.start(configuration.catches)
        assembly.drills.allowsPayloadDrills = configuration.allowsPayloadDrills
        do {
            try await assembly.clusterDrills?.start()
            try await assembly.drillOperations.configure(configuration.drills)
        } catch {
            await assembly.close()
            throw error
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let (activations, activated) = AsyncStream.makeStream(of: Int.self)
        let (sockets, socket) = AsyncStream.makeStream(of: Void.self)
        let (readiness, ready) = AsyncStream.makeStream(of: String?.self)
        let readinessService = ReadinessService(
            folder: folder,
            configuration: configuration,
            names: try assembly.trust.folder.serverCertificate().names,
            api: api,
            binary: binary,
            device: device,
            activation: { await activations.first { _ in true } },
            console: {
                guard await sockets.first(where: { _ in true }) != nil else { return nil }
                guard configuration.consoleMode != .off else { return .some(nil) }
                return await ports.first { _ in true }.map { .some($0) }
            },
            ready: { [assembly] addresses in
                assembly.manager.ready(ServiceRun.status(assembly), assembly.logger)
                let console = assembly.demo == nil ? nil : addresses.consoleURL
                ready.yield(console.map { "\($0)/#login=\(access.makeDemoCode())" })
            },
            announce: announce
        )
        var services: [any Service] = [
            StoreService(store: assembly.store, failure: assembly.storeFailure)
        ]
        if let cluster = assembly.cluster {
            services.append(ClusterService(node: cluster, postOffice: assembly.postOffice))
        }
        if let cluster = assembly.cluster {
            services.append(
                TrustSyncService(
                    sync: cluster.trust,
                    watch: watch,
                    seal: assembly.trust.seal,
                    courier: assembly.courier,
                    liveTokenKeys: { cluster.liveTokenKeys },
                    logger: assembly.logger
                )
            )
        }
        services += [
            clockWatch,
            StoreFileWatch(store: assembly.store),
            PostOfficeService(postOffice: assembly.postOffice),
            ChannelUpkeepService(channels: assembly.channels),
            SightingService(
                sightings: assembly.courier.sightings,
                store: assembly.trust.folder.store,
                logger: assembly.logger
            ),
            CourierService(courier: assembly.courier),
            GatewayService(gateway: assembly.gateway, binaryGateway: assembly.binaryGateway),
            watch,
            activation.listener { activated.yield($0) },
            console.socket { socket.yield() },
            readinessService,
            ReloadSignal(signals: hangups, watch: watch, configuration: reload, manager: assembly.manager),
            DrillWatch(drills: assembly.drills, cluster: assembly.clusterDrills),
            LiveWatch(live: live, gauges: gauges, clock: assembly.clock),
            CatchWatch(catcher: assembly.catcher),
        ]
        if configuration.consoleMode != .off { services.append(console.port { port.yield($0) }) }
        if let demo = assembly.demo {
            let host = configuration.host
            do {
                services.append(
                    try demo.service(folder, host: host, apiPort: api, devicePort: device, ready: readiness)
                )
            } catch {
                await assembly.close()
                throw error
            }
        }
        if let cluster = assembly.cluster {
            services.append(ClusterStopLimit(node: cluster, gracePeriod: configuration.gracePeriod))
        }
        // The last service stops first.
        services.append(
            Watchdog(
                assembly.manager,
                parts: [.init(name: "store") { [store = assembly.store] in store.askWriter($0) }],
                logger: assembly.logger
            ) { [assembly] in
                ServiceRun.status(assembly)
            }
        )
        var lifecycle = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) },
            gracefulShutdownSignals: stop == nil ? [.sigterm, .sigint] : [],
            logger: Logger(label: HeraldLogHandler.lifecycle)
        )
        // Cancels whatever has not ended by then.
        lifecycle.maximumGracefulShutdownDuration = configuration.gracePeriod + .seconds(5)
        let group = ServiceGroup(configuration: lifecycle)
        await stop?.onStop { await group.triggerGracefulShutdown() }
        defer { unlink(folder.controlSocketPath) }
        try await group.run()
    }

    /// The service's state for the service manager.
    private static func status(_ assembly: ServiceAssembly) -> String {
        "serving: devices \(assembly.postOffice.connectedCount) connected, notifications \(assembly.engine.count) waiting"
    }

    /// The callers that the console knows, with a new admin token.
    private func makeAccess() throws -> ConsoleAccess {
        let file = ConsoleTokenFile(folder: assembly.folder)
        let tokens = try file.read()
        return ConsoleAccess(
            adminToken: try makeAdminToken(),
            tokens: tokens,
            isOverTLS: assembly.consoleTLS != nil,
            clock: ServiceClock(),
            save: { try file.write($0) }
        )
    }

    /// The admin API's bearer token, new with each run.
    private func makeAdminToken() throws -> String {
        let token = Hex.random(bytes: 32)
        try SafeFile.write(Array((token + "\n").utf8), to: assembly.folder.adminTokenPath, mode: 0o600)
        return token
    }
}

/// Prints and publishes the listeners' addresses once all of them are open.
struct ReadinessService: Service {
    let folder: DataFolder
    let configuration: ServerConfiguration
    /// The names of the server certificate.
    let names: Set<ServerName>
    let api: Int
    let binary: (binary: Int, feedback: Int)
    let device: Int
    /// The activation listener's port, once it is open; nil if it never opens.
    let activation: @Sendable () async -> Int?
    /// The console's port, once its listeners are open; nil in it for a console without a port, nil if they never open.
    let console: @Sendable () async -> Int??
    /// Called with the addresses after `ready` was printed.
    let ready: @Sendable (ListeningAddresses) -> Void
    let announce: @Sendable (String) -> Void

    func run() async throws {
        guard let activation = await activation(), let console = await console() else { return }
        let listeners = ListeningAddresses(
            api: api,
            binary: binary.binary,
            feedback: binary.feedback,
            device: device,
            activation: activation,
            console: console,
            pid: getpid(),
            host: configuration.host,
            name: ListeningAddresses.name(of: configuration.host, in: names),
            consoleHost: configuration.consoleHost,
            consoleTLS: configuration.isConsoleOverTLS
        )
        listeners.lines.forEach(announce)
        try listeners.write(to: folder)
        announce("ready")
        ready(listeners)
        try? await gracefulShutdown()
    }
}
