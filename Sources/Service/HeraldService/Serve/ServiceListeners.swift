import HeraldCourier
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldStores
import HeraldTrust
import HeraldWeb
import Logging
import NIOPosix
import NIOSSL

/// The listeners of a service for providers and devices, which do not listen yet.
struct ServiceListeners: Sendable {
    let gateway: Gateway
    let binaryGateway: BinaryGateway
    let courier: Courier
    /// The TLS context of the activation listener.
    let activationContext: NIOSSLContext
    /// TLS of the console's port; nil if that is plain HTTP.
    let consoleTLS: WebTLS?

    /// The ports that listen.
    struct Ports: Sendable {
        let api: Int
        let device: Int
        let binary: (binary: Int, feedback: Int)
    }

    /// Makes the listeners.
    init(
        _ configuration: ServerConfiguration,
        trust: TrustService,
        contexts: ListenerContexts,
        storage: ServiceStorage,
        delivery: ServiceDelivery,
        trials: ServiceTrials,
        clock: ServiceClock,
        logger: Logger
    ) {
        let admission = Admission(trust: trust, apps: delivery.registry, senders: storage.store.senders)
        gateway = Gateway(
            configuration: configuration.gateway,
            group: MultiThreadedEventLoopGroup.singleton,
            context: contexts.providers,
            admission: admission,
            sink: delivery.postOffice,
            channels: delivery.channels,
            confirmations: delivery.confirmations,
            clock: clock,
            logger: logger,
            drills: trials.drills,
            catcher: trials.catcher
        )
        binaryGateway = BinaryGateway(
            binary: configuration.binary,
            feedback: configuration.feedback,
            group: MultiThreadedEventLoopGroup.singleton,
            contexts: contexts.binary,
            admission: admission,
            sink: delivery.postOffice,
            feedbackSource: delivery.registry,
            confirmations: delivery.confirmations,
            gateway: gateway,
            clock: clock,
            logger: logger
        )
        courier = Courier(
            configuration: configuration.courier,
            listener: configuration.deviceListener,
            tls: contexts.devices,
            group: MultiThreadedEventLoopGroup.singleton,
            services: CourierServices(
                registry: delivery.registry,
                postOffice: delivery.postOffice,
                channels: delivery.channels,
                tokens: trust.seal,
                trust: trust
            ),
            trust: trust,
            clock: clock,
            logger: logger
        )
        delivery.channels.deliver(through: courier)
        activationContext = contexts.activation
        consoleTLS = configuration.isConsoleOverTLS ? WebTLS(contexts.console) : nil
    }

    /// Opens the listeners.
    /// - Throws: If a port cannot be listened on.
    func open() async throws -> Ports {
        let device = try await courier.open()
        let api = try await gateway.open()
        return Ports(api: api, device: device, binary: try await binaryGateway.open())
    }
}

/// The parts of a service for the tests of its users: drills, and messages that it catches.
struct ServiceTrials: Sendable {
    let drills: DrillService
    let catcher: CatchService
    /// The drills of the cluster; nil for a service of one node.
    let cluster: ClusterDrills?

    init(_ cluster: ClusterNode?, _ clock: ServiceClock, _ logger: Logger) {
        drills = DrillService(clock: clock, logger: logger)
        catcher = CatchService(clock: clock, logger: logger)
        self.cluster = cluster?.drills(performedBy: drills, clock: clock, logger: logger)
    }
}
