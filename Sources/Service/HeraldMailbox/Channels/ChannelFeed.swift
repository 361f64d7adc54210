import CoreMetrics
package import HeraldModel
import Synchronization

/// The topic and the counters of a channel, shared by its subscribers on every event loop.
package final class ChannelFeed: Sendable {
    package let id: ChannelID
    /// `channels/<bundle id>/<channel id>` in bytes.
    package let topic: [UInt8]
    private let metrics: BroadcastMetrics
    private let subscriberCount = Atomic<Int>(0)
    private let publishedCount = Atomic<Int>(0)
    private let deliveredCount = Atomic<Int>(0)

    init(id: ChannelID, bundle: Topic, metrics: BroadcastMetrics) {
        self.id = id
        self.metrics = metrics
        topic = Array("channels/\(bundle.name)/\(id.topicLevel)".utf8)
    }

    /// The number of connected subscribers.
    package var subscribers: Int { subscriberCount.load(ordering: .relaxed) }
    /// The number of broadcasts accepted since the start.
    package var published: Int { publishedCount.load(ordering: .relaxed) }
    /// The number of copies that devices acknowledged, or got at QoS 0, since the start.
    package var delivered: Int { deliveredCount.load(ordering: .relaxed) }

    /// Counts a connected device that subscribed (1) or is gone (-1).
    package func countSubscriber(_ change: Int) {
        subscriberCount.wrappingAdd(change, ordering: .relaxed)
        metrics.subscriptions.increment(by: Double(change))
    }

    /// Counts the end of one copy.
    package func count(_ result: BroadcastResult) {
        if result == .acknowledged || result == .written { deliveredCount.wrappingAdd(1, ordering: .relaxed) }
        metrics.count(result)
    }

    func countPublished() {
        publishedCount.wrappingAdd(1, ordering: .relaxed)
        metrics.published.increment()
    }
}

/// The result of one copy of a broadcast.
package enum BroadcastResult: Hashable, Sendable {
    /// The device acknowledged it.
    case acknowledged
    /// The device acknowledged it with a refusal.
    case refused
    /// Written at QoS 0.
    case written
    /// A newer broadcast of the channel replaced it before the device could take it.
    case replaced
    /// Larger than the device accepts.
    case tooLarge
    /// It expired before the device could take it.
    case expired
    /// The device's client ends the connection each time it comes.
    case endsConnection
}

/// The metrics of broadcasts.
struct BroadcastMetrics: Sendable {
    let published = Counter(label: MetricName.broadcastsPublished)
    let channels = Gauge(label: MetricName.channels)
    let subscriptions = Meter(label: MetricName.channelSubscriptions)
    private let acknowledged = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "acknowledged")])
    private let refused = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "refused")])
    private let written = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "written")])
    private let replaced = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "replaced")])
    private let tooLarge = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "too_large")])
    private let expired = Counter(label: MetricName.broadcastDeliveries, dimensions: [("result", "expired")])
    private let endsConnection = Counter(
        label: MetricName.broadcastDeliveries,
        dimensions: [("result", "ends_connection")]
    )

    func count(_ result: BroadcastResult) {
        switch result {
        case .acknowledged: acknowledged.increment()
        case .refused: refused.increment()
        case .written: written.increment()
        case .replaced: replaced.increment()
        case .tooLarge: tooLarge.increment()
        case .expired: expired.increment()
        case .endsConnection: endsConnection.increment()
        }
    }
}
