import CoreMetrics
package import HeraldModel
import Synchronization

/// One channel as its subscribers know it: shared by all of them, on every event loop.
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

    /// How many connected devices are subscribed.
    package var subscribers: Int { subscriberCount.load(ordering: .relaxed) }
    /// How many broadcasts were accepted since the start.
    package var published: Int { publishedCount.load(ordering: .relaxed) }
    /// How many copies devices have acknowledged, or taken at QoS 0, since the start.
    package var delivered: Int { deliveredCount.load(ordering: .relaxed) }

    /// A connected device subscribed, or is gone.
    package func countSubscriber(_ change: Int) {
        subscriberCount.wrappingAdd(change, ordering: .relaxed)
        metrics.subscriptions.increment(by: Double(change))
    }

    /// How one copy ended.
    package func count(_ result: BroadcastResult) {
        if result == .acknowledged || result == .written { deliveredCount.wrappingAdd(1, ordering: .relaxed) }
        metrics.count(result)
    }

    func countPublished() {
        publishedCount.wrappingAdd(1, ordering: .relaxed)
        metrics.published.increment()
    }
}

/// How one copy of a broadcast ended.
package enum BroadcastResult: Hashable, Sendable {
    /// The device acknowledged it.
    case acknowledged
    /// The device acknowledged it with a refusal.
    case refused
    /// Written to a connection that acknowledges nothing.
    case written
    /// A newer one of its channel took its place before the device could take it.
    case replaced
    /// Larger than the device accepts.
    case tooLarge
    /// Its time was over before the device could take it.
    case expired
}

/// The counters of broadcasts.
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

    func count(_ result: BroadcastResult) {
        switch result {
        case .acknowledged: acknowledged.increment()
        case .refused: refused.increment()
        case .written: written.increment()
        case .replaced: replaced.increment()
        case .tooLarge: tooLarge.increment()
        case .expired: expired.increment()
        }
    }
}
