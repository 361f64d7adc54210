import CoreMetrics
import HeraldListener
import HeraldMailbox
import HeraldModel
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
    let takeovers: Takeovers
    let requests: RegistryRequests
    private let refusedTopics = Mutex(RefusalLogLimiter<String>())

    init(services: CourierServices, limits: CourierLimits, clock: any WallClock, logger: Logger) {
        self.services = services
        self.limits = limits
        self.clock = clock
        self.logger = logger
        takeovers = Takeovers(limits.configuration, logger: logger)
        requests = RegistryRequests(services, takeovers, metrics, logger: logger)
    }

    /// Logs a refused topic, at most one of each kind in a minute: any device can ask for anything at any rate.
    func log(_ refused: RefusedTopic, of device: DeviceID, now: NIODeadline) {
        let (message, topic, allowed): (Logger.Message, String, String) =
            switch refused {
            case .subscribe(let filter):
                ("topic filter of a device refused", filter, RefusedTopic.allowedFilters)
            case .publish(let topic): ("publish of a device refused", topic, RefusedTopic.allowedTopics)
            }
        guard let unlogged = refusedTopics.withLock({ $0.take("\(message)", now: now) }) else { return }
        var metadata: Logger.Metadata = ["device": "\(device)", "topic": "\(topic)", "allowed": "\(allowed)"]
        if unlogged > 0 { metadata["since_last_line"] = "\(unlogged)" }
        logger.notice(message, metadata: metadata)
    }
}

/// The configuration, and the limits in seconds that may change while the service runs: they hold for later connections.
final class CourierLimits: Sendable {
    let configuration: CourierConfiguration
    let longestKeepAlive: Atomic<Int64>
    let longestSession: Atomic<Int64>

    init(_ configuration: CourierConfiguration) {
        self.configuration = configuration
        longestKeepAlive = Atomic(configuration.longestKeepAlive.components.seconds)
        longestSession = Atomic(configuration.longestSession.components.seconds)
    }
}

/// The courier's counters.
struct CourierMetrics: Sendable {
    let connections = Counter(label: MetricName.deviceConnections)
    let refusals = Counter(label: MetricName.deviceRefusals)
    let fullQueues = Counter(label: MetricName.deviceQueuesFull)
    let registrationsRefused = Counter(label: MetricName.registrationsRefused)
}
