import Foundation
package import HeraldActivation
import HeraldCluster
import HeraldConsole
import HeraldCourier
package import HeraldGateway
import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import HeraldStores
package import HeraldTrust
package import HeraldWeb
package import Logging
import NIOCore
import NIOPosix
import NIOSSL
package import ServiceLifecycle

/// The parts of a service on a data folder, connected with each other.
///
/// Nothing listens yet.
///
/// Each part is made after the parts that it needs: clock, trust, store, post office, registry, listeners.
package struct ServiceAssembly: Sendable {
    package let configuration: ServerConfiguration
    package let folder: DataFolder
    package let clock: ServiceClock
    package let trust: TrustService
    /// The database in the data folder.
    ///
    /// In a cluster it keeps the journal and the clock alone.
    package let store: SQLiteStore
    /// The place in a cluster; nil for a service that stands alone.
    package let cluster: ClusterNode?
    /// The store of notifications, registrations, sessions and channels: the cluster, or the database.
    let engine: any ServiceStore
    let postOffice: PostOffice
    let registry: Registry
    package let channels: ChannelService
    package let gateway: Gateway
    package let drills: DrillService
    let catcher: CatchService
    /// The drills of the cluster; nil for a service of one node.
    let clusterDrills: ClusterDrills?
    let binaryGateway: BinaryGateway
    let courier: Courier
    /// The TLS context of the activation listener.
    let activationContext: NIOSSLContext
    /// TLS of the console's port; nil if that is plain HTTP.
    package let consoleTLS: WebTLS?
    /// Yields when the store has failed permanently.
    let storeFailure: AsyncStream<StoreError>
    /// With `--demo` only.
    package let demo: (any ServiceGuest)?
    package let manager: ServiceManager
    package let logger: Logger

    /// Makes a service.
    ///
    /// The caller holds the folder's lock.
    /// - Throws: An error that tells the operator what to do.
    package static func make(
        _ configuration: ServerConfiguration,
        folder: DataFolder,
        clock: ServiceClock,
        manager: ServiceManager,
        logger: Logger,
        guest: @escaping ServiceGuestMaker
    ) async throws -> ServiceAssembly {
        if clock.isAdjustable {
            logger.warning(
                "the service's clock can be moved: not for production",
                metadata: ["now": "\(clock.now().rfc3339)"]
            )
        }
        if configuration.isConsoleExposed {
            logger.warning(
                "the console is plain HTTP where other machines reach it: let a proxy with TLS alone reach it",
                metadata: ["console-host": "\(configuration.consoleHost)", "console-tls": "off"]
            )
        }
        try configuration.cluster.check(folder)
        let (failures, failure) = AsyncStream.makeStream(of: StoreError.self, bufferingPolicy: .bufferingOldest(1))
        let store = try SQLiteStore(
            path: folder.databasePath,
            clock: clock,
            logger: logger,
            onStep: { manager.status($0.rawValue) },
            onFatal: { failure.yield($0) }
        )
        let cluster: ClusterNode?
        do {
            try folder.recordStore()
            clock.resume(try await store.clockRecord())
            cluster =
                configuration.cluster.servers.isEmpty
                ? nil
                : try await ClusterNode.join(
                    configuration.cluster,
                    folder: folder,
                    journal: store,
                    hostnames: configuration.hostnames,
                    listening: configuration.listening,
                    clock: clock,
                    manager: manager,
                    logger: logger
                )
        } catch {
            await store.close()
            throw error
        }
        let (trust, contexts, demo): (TrustService, ListenerContexts, (any ServiceGuest)?)
        do {
            (trust, contexts, demo) = try await openTrust(configuration, folder, of: cluster, now: clock.now(), guest)
        } catch {
            await cluster?.close()
            await store.close()
            throw error
        }
        let engine: any ServiceStore = cluster?.store ?? store
        let directory: any ConnectionDirectory = cluster?.store.directory ?? SingleNodeDirectory()
        var postOfficeConfiguration = configuration.postOffice
        postOfficeConfiguration.storesFirst = cluster != nil
        let confirmations = engine.shared.map { RefusalConfirmations(shared: $0, clock: clock) }
        let postOffice = PostOffice(
            configuration: postOfficeConfiguration,
            clock: clock,
            store: engine,
            directory: directory,
            confirmations: confirmations,
            logger: logger
        )
        engine.report(to: postOffice)
        directory.serve(postOffice)
        let registry = Registry(
            configuration: configuration.registry,
            store: engine,
            postOffice: postOffice,
            directory: directory,
            clock: clock,
            logger: logger
        )
        let channels = ChannelService(
            configuration: configuration.channels,
            clock: clock,
            store: engine,
            apps: registry,
            memory: postOffice.memory,
            logger: logger
        )
        do {
            try await registry.load()
            try await channels.load()
        } catch {
            await cluster?.close()
            await store.close()
            throw error
        }
        let admission = Admission(trust: trust, apps: registry, senders: store.senders)
        let drills = DrillService(clock: clock, logger: logger)
        let catcher = CatchService(clock: clock, logger: logger)
        let gateway = Gateway(
            configuration: configuration.gateway,
            group: MultiThreadedEventLoopGroup.singleton,
            context: contexts.providers,
            admission: admission,
            sink: postOffice,
            channels: channels,
            confirmations: confirmations,
            clock: clock,
            logger: logger,
            drills: drills,
            catcher: catcher
        )
        let binaryGateway = BinaryGateway(
            binary: configuration.binary,
            feedback: configuration.feedback,
            group: MultiThreadedEventLoopGroup.singleton,
            contexts: contexts.binary,
            admission: admission,
            sink: postOffice,
            feedbackSource: registry,
            confirmations: confirmations,
            gateway: gateway,
            clock: clock,
            logger: logger
        )
        let courier = Courier(
            configuration: configuration.courier,
            listener: configuration.deviceListener,
            tls: contexts.devices,
            group: MultiThreadedEventLoopGroup.singleton,
            services: CourierServices(
                registry: registry,
                postOffice: postOffice,
                channels: channels,
                tokens: trust.seal,
                topics: trust
            ),
            trust: trust,
            clock: clock,
            logger: logger
        )
        channels.deliver(through: courier)
        return ServiceAssembly(
            configuration: configuration,
            folder: folder,
            clock: clock,
            trust: trust,
            store: store,
            cluster: cluster,
            engine: engine,
            postOffice: postOffice,
            registry: registry,
            channels: channels,
            gateway: gateway,
            drills: drills,
            catcher: catcher,
            clusterDrills: cluster?.drills(performedBy: drills, clock: clock, logger: logger),
            binaryGateway: binaryGateway,
            courier: courier,
            activationContext: contexts.activation,
            consoleTLS: configuration.isConsoleOverTLS ? WebTLS(contexts.console) : nil,
            storeFailure: failures,
            demo: demo,
            manager: manager,
            logger: logger
        )
    }
}

extension ServiceAssembly {
    /// Opens the trust folder; that of a cluster's node is open already.
    private static func openTrust(
        _ configuration: ServerConfiguration,
        _ folder: DataFolder,
        of cluster: ClusterNode?,
        now: WallTime,
        _ makeGuest: ServiceGuestMaker
    ) async throws -> (TrustService, ListenerContexts, (any ServiceGuest)?) {
        let trust =
            if let cluster {
                cluster.trust.folder
            } else {
                try await TrustFolder.create(
                    at: folder.path,
                    hostnames: configuration.hostnames,
                    listening: configuration.listening,
                    store: TrustDatabase.open,
                    now: now
                )
            }
        let demo =
            configuration.demo
            ? try await makeGuest(folder, trust, configuration.demoScreenPort, now)
            : nil
        let (service, contexts) = try await ServiceTrust.load(trust, configuration)
        if let cluster {
            service.seal.sealUpTo(TokenKeyUse(newest: service.seal.newestOpenKey, live: cluster.liveTokenKeys).usable)
        }
        return (service, contexts, demo)
    }

    /// Closes the stores of a service that does not come to serve.
    package func close() async {
        await cluster?.close()
        await store.close()
    }

    package var journal: ServiceJournal { ServiceJournal(store: store, registry: registry, cluster: cluster) }

    var drillOperations: DrillOperations { DrillOperations(service: drills, seal: trust.seal, cluster: clusterDrills) }

    /// The activation listener, which tells devices the port of the device listener.
    package func activation(devicePort: Int) -> Activation {
        Activation(
            configuration: configuration.activation,
            context: activationContext,
            trust: trust,
            devicePort: devicePort,
            clock: clock,
            logger: logger
        )
    }
}

/// Something that runs with a service and uses it from outside: the demo's device.
package protocol ServiceGuest: Sendable {
    /// The guest's own service, once the listeners are open; `ready` yields the console's address.
    func service(
        _ data: DataFolder,
        host: String,
        apiPort: Int,
        devicePort: Int,
        ready: AsyncStream<String?>
    ) throws -> any Service
}

/// Makes the guest of a service with `--demo`: from its folder, its trust, the port of the demo's screen, and the time.
package typealias ServiceGuestMaker =
    @Sendable (DataFolder, TrustFolder, Int, WallTime) async throws -> any ServiceGuest

/// The store of a service, for all its parts.
typealias ServiceStore = MailboxStore & JournalStore & RegistryStore & ChannelStore

extension PostOffice: NotificationSink {}
extension Registry: AppDirectory {}
extension Registry: FeedbackSource {}
