import HeraldActivation
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// The parts of a service on a data folder, connected with each other.
///
/// Nothing listens yet.
///
/// Each part is made after the parts that it needs: clock, storage, trust, delivery, listeners.
package struct ServiceAssembly: Sendable {
    let configuration: ServerConfiguration
    let folder: DataFolder
    let clock: ServiceClock
    let trust: TrustService
    let storage: ServiceStorage
    let delivery: ServiceDelivery
    let listeners: ServiceListeners
    let trials: ServiceTrials
    /// With `--demo` only.
    let demo: (any ServiceGuest)?
    let manager: ServiceManager
    let logger: Logger

    /// Whether a device is connected to this node, or to another one of its cluster.
    func isConnected(_ device: DeviceID) -> Bool {
        guard let number = delivery.registry.number(of: device) else { return false }
        return delivery.postOffice.isConnected(number) || storage.cluster?.otherHolder(of: number) != nil
    }

    /// Makes a service.
    ///
    /// The caller holds the folder's lock.
    /// - Throws: An error that tells the operator what to do.
    static func make(
        _ configuration: ServerConfiguration,
        folder: DataFolder,
        in process: ServiceProcess
    ) async throws -> ServiceAssembly {
        let (clock, logger) = (configuration.clock.makeClock(), process.logger)
        warn(configuration, clock, logger)
        let storage = try await ServiceStorage.open(configuration, folder: folder, clock: clock, process: process)
        return try await closingOnFailure(storage.close) {
            let opened = try await openTrust(configuration, folder, of: storage.cluster, now: clock.now())
            let demo =
                configuration.demo
                ? try await process.makeGuest?(folder, opened, configuration.demoScreenPort, clock.now()) : nil
            let (trust, contexts) = try await ServiceTrust.load(opened, configuration)
            if let cluster = storage.cluster {
                trust.seal.sealUpTo(TokenKeyUse(newest: trust.seal.newestOpenKey, live: cluster.liveTokenKeys).usable)
            }
            let delivery = try await ServiceDelivery.load(configuration, storage: storage, clock: clock, logger: logger)
            let trials = ServiceTrials(storage.cluster, clock, logger)
            return ServiceAssembly(
                configuration: configuration,
                folder: folder,
                clock: clock,
                trust: trust,
                storage: storage,
                delivery: delivery,
                listeners: ServiceListeners(
                    configuration,
                    trust: trust,
                    contexts: contexts,
                    storage: storage,
                    delivery: delivery,
                    trials: trials,
                    clock: clock,
                    logger: logger
                ),
                trials: trials,
                demo: demo,
                manager: process.manager,
                logger: logger
            )
        }
    }

    /// Says what in the configuration is not for production.
    private static func warn(_ configuration: ServerConfiguration, _ clock: ServiceClock, _ logger: Logger) {
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
    }

    /// Opens the trust folder; that of a cluster's node is open already.
    private static func openTrust(
        _ configuration: ServerConfiguration,
        _ folder: DataFolder,
        of cluster: ClusterNode?,
        now: WallTime
    ) async throws -> TrustFolder {
        if let cluster { return cluster.trust.folder }
        return try await TrustFolder.create(
            at: folder.path,
            hostnames: configuration.hostnames,
            listening: configuration.listening,
            addresses: configuration.announcedAddresses,
            store: TrustDatabase.open,
            now: now
        )
    }

    var journal: ServiceJournal {
        ServiceJournal(store: storage.store, registry: delivery.registry, cluster: storage.cluster)
    }

    var drillOperations: DrillOperations {
        DrillOperations(service: trials.drills, seal: trust.seal, cluster: trials.cluster)
    }

    /// The activation listener, which tells devices the port of the device listener.
    func activation(devicePort: Int) -> Activation {
        Activation(
            configuration: configuration.activation,
            context: listeners.activationContext,
            trust: trust,
            devicePort: devicePort,
            clock: clock,
            logger: logger
        )
    }
}
