import HeraldActivation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldStores
import HeraldTrust
import ServiceLifecycle

/// Everything of a service that runs, in the order of its start.
struct ServiceList {
    let assembly: ServiceAssembly
    let process: ServiceProcess
    let watches: ServiceWatches
    let console: ServiceConsole
    private let activationPort = OneTimeValue<Int>()
    private let consolePort = OneTimeValue<Int>()
    private let socket = OneTimeValue<Void>()
    /// The link to the console, once the service is ready; nil if the console has no port.
    private let link = OneTimeValue<String?>()

    /// The last service stops first.
    func services(_ ports: ServiceListeners.Ports, _ access: ConsoleAccess) throws -> [any Service] {
        var services = keeping + delivering
        services += [
            watches.activation.listener { [activationPort] in activationPort.make($0) },
            console.console.socket { [socket] in socket.make(()) },
            try readiness(ports, access),
        ]
        services += watching
        if assembly.configuration.consoleMode != .off {
            services.append(console.console.port { [consolePort] in consolePort.make($0) })
        }
        if let demo = assembly.demo {
            let host = assembly.configuration.host
            let (api, device) = (ports.api, ports.device)
            services.append(
                try demo.service(assembly.folder, host: host, apiPort: api, devicePort: device, ready: link.values)
            )
        }
        if let cluster = assembly.storage.cluster {
            services.append(ClusterStopLimit(node: cluster, gracePeriod: assembly.configuration.gracePeriod))
        }
        services.append(
            Watchdog(
                assembly.manager,
                parts: [.init(name: "store") { [store = assembly.storage.store] in store.askWriter($0) }],
                logger: assembly.logger
            ) { [assembly] in
                ServiceList.status(assembly)
            }
        )
        return services
    }

    /// The stores, which stop last.
    private var keeping: [any Service] {
        let storage = assembly.storage
        var services: [any Service] = [StoreService(store: storage.store, failure: storage.failure)]
        if let cluster = storage.cluster {
            services += [
                ClusterService(node: cluster, postOffice: assembly.delivery.postOffice),
                TrustSyncService(
                    sync: cluster.trust,
                    watch: watches.trust,
                    seal: assembly.trust.seal,
                    courier: assembly.listeners.courier,
                    liveTokenKeys: { cluster.liveTokenKeys },
                    logger: assembly.logger
                ),
            ]
        }
        return services
    }

    private var delivering: [any Service] {
        [
            watches.clock,
            StoreFileWatch(store: assembly.storage.store),
            PostOfficeService(postOffice: assembly.delivery.postOffice),
            ChannelUpkeepService(channels: assembly.delivery.channels),
            SightingService(
                courier: assembly.listeners.courier,
                store: assembly.trust.folder.store,
                logger: assembly.logger,
                fleet: FleetGauges(assembly)
            ),
            CourierService(courier: assembly.listeners.courier),
            GatewayService(gateway: assembly.listeners.gateway, binaryGateway: assembly.listeners.binaryGateway),
            watches.trust,
        ]
    }

    private var watching: [any Service] {
        var services: [any Service] = [
            DrillWatch(drills: assembly.trials.drills, cluster: assembly.trials.cluster),
            LiveWatch(live: console.live, gauges: console.gauges, clock: assembly.clock),
            CatchWatch(catcher: assembly.trials.catcher),
        ]
        if let hangups = process.hangups, let read = process.configuration {
            let reload = ConfigurationReload(assembly, threshold: process.threshold, read: read)
            services.insert(
                ReloadSignal(signals: hangups, watch: watches.trust, configuration: reload, manager: assembly.manager),
                at: 0
            )
        }
        return services
    }

    private func readiness(_ ports: ServiceListeners.Ports, _ access: ConsoleAccess) throws -> ReadinessService {
        let mode = assembly.configuration.consoleMode
        return ReadinessService(
            folder: assembly.folder,
            configuration: assembly.configuration,
            names: try assembly.trust.folder.serverCertificate().names,
            ports: ports,
            activation: { [activationPort] in await activationPort.value },
            console: { [socket, consolePort] in
                guard await socket.value != nil else { return nil }
                guard mode != .off else { return .some(nil) }
                return await consolePort.value.map { .some($0) }
            },
            ready: { [assembly, link] addresses in
                assembly.manager.ready(ServiceList.status(assembly), assembly.logger)
                let console = assembly.demo == nil ? nil : addresses.consoleURL
                link.make(console.map { "\($0)/#login=\(access.makeDemoCode())" })
            },
            announce: process.announce
        )
    }

    /// The service's state for the service manager.
    private static func status(_ assembly: ServiceAssembly) -> String {
        "serving: devices \(assembly.delivery.postOffice.connectedCount) connected, "
            + "notifications \(assembly.storage.engine.count) waiting"
    }
}

/// A value that one part of a service gives once, and another one waits for.
struct OneTimeValue<Value: Sendable>: Sendable {
    let values: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() { (values, continuation) = AsyncStream.makeStream(of: Value.self) }

    func make(_ value: Value) { continuation.yield(value) }

    /// Nil if the waiting task is cancelled.
    var value: Value? {
        get async { await values.first { _ in true } }
    }
}
