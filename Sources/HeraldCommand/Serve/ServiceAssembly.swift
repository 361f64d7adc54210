import Foundation
import HeraldActivation
import HeraldConsole
import HeraldCourier
import HeraldDoor
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import NIOCore
import NIOPosix
import NIOSSL

/// A whole service on a data folder: every part made, and handed what it needs.
///
/// The order is the order of need: clock, trust, store, post office, registry, doors. Nothing listens yet.
struct ServiceAssembly: Sendable {
    let configuration: ServerConfiguration
    let folder: DataFolder
    let clock: ServiceClock
    let trust: TrustOffice
    let store: SQLiteStore
    let postOffice: PostOffice
    let registry: Registry
    let channels: ChannelOffice
    let gateway: Gateway
    let drills: DrillDesk
    let binaryGateway: BinaryGateway
    let courier: Courier
    /// The TLS context of the activation door, until that is made.
    let activationContext: NIOSSLContext
    /// Told when the store has failed for good.
    let storeFailure: AsyncStream<StoreError>
    /// With `--demo` only.
    let demo: Demo?
    let logger: Logger

    /// Makes a service; the folder is locked by the caller.
    /// - Throws: An error whose text tells the operator what to do.
    static func make(
        _ configuration: ServerConfiguration,
        folder: DataFolder,
        clock: ServiceClock,
        logger: Logger
    ) async throws -> ServiceAssembly {
        if clock.isAdjustable {
            logger.warning(
                "the service's clock can be moved: not for production",
                metadata: ["now": "\(clock.now().rfc3339)"]
            )
        }
        let trustFolder = try TrustFolder.create(
            at: folder.path,
            hostnames: configuration.hostnames,
            now: clock.now()
        )
        try refusePublicAddress(configuration, trustFolder)
        let demo = configuration.demo ? try Demo(folder, trust: trustFolder, now: clock.now()) : nil
        let trust = try TrustOffice(
            folder: trustFolder,
            revocationPolicy: configuration.revocations,
            unmarkedEnvironments: configuration.unmarkedEnvironments
        )
        let (failures, failure) = AsyncStream.makeStream(of: StoreError.self, bufferingPolicy: .bufferingOldest(1))
        let store = try SQLiteStore(path: folder.databasePath, clock: clock, logger: logger) { error in
            failure.yield(error)
        }
        try folder.recordStore()
        let directory = SingleNodeDirectory()
        let postOffice = PostOffice(
            configuration: configuration.postOffice,
            clock: clock,
            store: store,
            directory: directory,
            logger: logger
        )
        store.report(to: postOffice)
        let registry = Registry(
            configuration: configuration.registry,
            store: store,
            postOffice: postOffice,
            directory: directory,
            clock: clock
        )
        try await registry.load()
        let channels = ChannelOffice(
            configuration: configuration.channels,
            clock: clock,
            store: store,
            apps: registry,
            load: postOffice.load,
            logger: logger
        )
        try await channels.load()
        let contexts = try DoorContexts(trustFolder)
        let admission = Admission(trust: trust, apps: registry)
        let drills = DrillDesk(clock: clock, logger: logger)
        let gateway = Gateway(
            configuration: configuration.gateway,
            group: MultiThreadedEventLoopGroup.singleton,
            context: contexts.providers,
            admission: admission,
            letterBox: postOffice,
            channels: channels,
            clock: clock,
            logger: logger,
            drills: drills
        )
        let binaryGateway = BinaryGateway(
            binary: configuration.binary,
            feedback: configuration.feedback,
            group: MultiThreadedEventLoopGroup.singleton,
            contexts: contexts.binary,
            admission: admission,
            letterBox: postOffice,
            book: registry,
            gateway: gateway,
            clock: clock,
            logger: logger
        )
        let office = ServiceOffice(
            postOffice: postOffice,
            registry: registry,
            channels: channels,
            seal: trust.seal
        )
        var door = DoorConfiguration(name: "devices", host: configuration.host, port: configuration.devicePort)
        door.portOption = "--device-port"
        let courier = Courier(
            configuration: configuration.courier,
            door: door,
            tls: contexts.devices,
            group: MultiThreadedEventLoopGroup.singleton,
            office: office,
            trust: ServiceTrust(trust),
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
            postOffice: postOffice,
            registry: registry,
            channels: channels,
            gateway: gateway,
            drills: drills,
            binaryGateway: binaryGateway,
            courier: courier,
            activationContext: contexts.activation,
            storeFailure: failures,
            demo: demo,
            logger: logger
        )
    }
}

extension ServiceAssembly {
    /// The activation door, which tells devices where the devices' door is.
    func activation(devicePort: Int) -> Activation {
        var settings = ActivationConfiguration(host: configuration.host, port: configuration.activationPort)
        settings.certificateLifetime = configuration.deviceCertificateLifetime
        return Activation(
            configuration: settings,
            context: activationContext,
            trust: trust,
            devicePort: devicePort,
            clock: clock,
            logger: logger
        )
    }

    /// A service that answers to Apple's names is for the network of the people who made it.
    private static func refusePublicAddress(_ configuration: ServerConfiguration, _ trust: TrustFolder) throws {
        guard ListenAddress.isPublic(configuration.host), try trust.serverCertificate().namesApple else { return }
        throw CommandError(
            .configuration,
            "the server certificate has Apple's names (`herald init --as-apple`), so the service does not listen on "
                + "\(configuration.host): choose a private address with --host, or another folder with --data"
        )
    }
}

extension PostOffice: LetterBox {}
extension Registry: AppDirectory {}
extension Registry: FeedbackBook {}
