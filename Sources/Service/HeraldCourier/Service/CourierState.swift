import CoreMetrics
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore
import Synchronization

/// The services, limits and tables that all connections of a courier share.
final class CourierState: Sendable {
    let services: CourierServices
    let limits: CourierLimits
    let clock: any WallClock
    let logger: Logger
    let metrics = CourierMetrics()
    let connections = ConnectionTable()
    let sightings = DeviceSightings()
    let takeovers: Takeovers
    let requests: RegistryRequests
    let repeatedEnds = Mutex(RepeatedEnds())
    private let refusedTopics = Mutex(RefusalLogLimiter<String>())

    init(services: CourierServices, limits: CourierLimits, clock: any WallClock, logger: Logger) {
        self.services = services
        self.limits = limits
        self.clock = clock
        self.logger = logger
        takeovers = Takeovers(limits.configuration, logger: logger)
        requests = RegistryRequests(services, takeovers, metrics, limits: limits, logger: logger)
    }

    func noteConnected(part: Int, of parts: Int) {
        let now = clock.now()
        for link in connections.links where UInt(bitPattern: link.identity.id.hashValue) % UInt(parts) == part {
            sightings.note(link.sighting(at: now))
        }
    }

    /// Logs a refused topic, at most one of each kind in a minute: any device can ask for anything at any rate.
    func log(_ refused: RefusedTopic, of device: DeviceID, now: NIODeadline) {
        let (message, topic, key, words): (Logger.Message, String, String, String) =
            switch refused {
            case .subscribe(let filter):
                ("topic filter of a device refused", filter, "allowed", RefusedTopic.allowedFilters)
            case .publish(let topic): ("publish of a device refused", topic, "allowed", RefusedTopic.allowedTopics)
            case .payload(let topic, let fault): ("payload of a device refused", topic, "reason", fault)
            }
        guard let unlogged = refusedTopics.withLock({ $0.take("\(message)", now: now) }) else { return }
        var metadata: Logger.Metadata = ["device": "\(device)", "topic": "\(topic)", key: "\(words)"]
        if unlogged > 0 { metadata["since_last_line"] = "\(unlogged)" }
        logger.notice(message, metadata: metadata)
    }
}

extension CourierState {
    /// Logs that a message is withheld from a device, because its client ends the connection each time it comes.
    func log(_ message: DeliveryWindow.Message, withheldFrom device: DeviceID) {
        var metadata: Logger.Metadata = ["device": "\(device)"]
        switch message {
        case .delivery(let delivery):
            metadata["notification"] = "\(delivery.envelope.notification.id)"
            if let app = services.registry.app(delivery.app) { metadata["topic"] = "\(app.topic)" }
        case .broadcast(let subscription):
            let bundle = CourierFilter(subscription.filter).flatMap { ChannelFilter($0)?.bundle }
            metadata["broadcast"] = "a broadcast for \(bundle?.name ?? "an app")"
        case .token, .announcement: break
        }
        logger.warning(
            "a device's client ends its connection each time this comes: it is not sent to the device again",
            metadata: metadata
        )
    }
}

/// The configuration, and the limits that may change while the service runs.
final class CourierLimits: Sendable {
    let configuration: CourierConfiguration
    // In seconds; a change holds for later connections.
    let longestKeepAlive: Atomic<Int64>
    let longestSession: Atomic<Int64>
    /// -1 if tokens are not required.
    private let tokenGraceSeconds: Atomic<Int64>
    /// A change holds for later registrations.
    private let onlyKnownTopics: Atomic<Bool>

    init(_ configuration: CourierConfiguration) {
        self.configuration = configuration
        longestKeepAlive = Atomic(configuration.longestKeepAlive.components.seconds)
        longestSession = Atomic(configuration.longestSession.components.seconds)
        tokenGraceSeconds = Atomic(configuration.tokenGrace?.components.seconds ?? -1)
        onlyKnownTopics = Atomic(configuration.deviceTopics == .known)
    }

    /// As ``CourierConfiguration/tokenGrace``.
    var tokenGrace: Duration? {
        let seconds = tokenGraceSeconds.load(ordering: .relaxed)
        return seconds < 0 ? nil : .seconds(seconds)
    }

    /// As ``CourierConfiguration/deviceTopics``.
    var deviceTopics: DeviceTopics { onlyKnownTopics.load(ordering: .relaxed) ? .known : .any }

    /// Takes over the limits that may change.
    func replace(_ configuration: CourierConfiguration) {
        longestKeepAlive.store(configuration.longestKeepAlive.components.seconds, ordering: .relaxed)
        longestSession.store(configuration.longestSession.components.seconds, ordering: .relaxed)
        tokenGraceSeconds.store(configuration.tokenGrace?.components.seconds ?? -1, ordering: .relaxed)
        onlyKnownTopics.store(configuration.deviceTopics == .known, ordering: .relaxed)
    }
}

/// The courier's counters.
struct CourierMetrics: Sendable {
    let connections = Counter(label: MetricName.deviceConnections)
    let refusals = Counter(label: MetricName.deviceRefusals)
    let fullQueues = Counter(label: MetricName.deviceQueuesFull)
    let arrivalsRefused = Counter(label: MetricName.deviceArrivalsRefused)
    let registrationsRefused = Counter(label: MetricName.registrationsRefused)
    let tokensMissing = Counter(label: MetricName.deviceTokensMissing)
    private let deliveryDuration = Timer(label: MetricName.deliveryDuration)

    /// Measures an acknowledged delivery, unless its notification was read from the store: it waited for the device.
    func measure(_ envelope: Envelope, acknowledged now: WallTime) {
        guard envelope.completion != nil else { return }
        let milliseconds = max(0, now.milliseconds - envelope.notification.received.milliseconds)
        deliveryDuration.recordMilliseconds(milliseconds)
    }
}
