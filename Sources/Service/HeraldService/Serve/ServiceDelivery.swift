import HeraldCluster
import HeraldGateway
import HeraldMailbox
import HeraldTrust
import Logging

/// The part of a service that keeps and delivers notifications: post office, registry, channels.
struct ServiceDelivery: Sendable {
    let postOffice: PostOffice
    let registry: Registry
    let channels: ChannelService
    /// Confirms in a cluster that a refusal is right; nil for a service that stands alone.
    let confirmations: RefusalConfirmations?

    /// Makes the parts, and loads registrations and channels.
    static func load(
        _ configuration: ServerConfiguration,
        storage: ServiceStorage,
        clock: ServiceClock,
        logger: Logger
    ) async throws -> ServiceDelivery {
        let engine = storage.engine
        let directory: any ConnectionDirectory = storage.cluster?.store.directory ?? SingleNodeDirectory()
        let confirmations = engine.shared.map { RefusalConfirmations(shared: $0, clock: clock) }
        var settings = configuration.postOffice
        settings.storesFirst = storage.cluster != nil
        let postOffice = PostOffice(
            configuration: settings,
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
        try await registry.load()
        try await channels.load()
        return ServiceDelivery(
            postOffice: postOffice,
            registry: registry,
            channels: channels,
            confirmations: confirmations
        )
    }
}

extension PostOffice: NotificationSink {}
extension Registry: AppDirectory {}
extension Registry: FeedbackSource {}
