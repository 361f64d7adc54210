import CoreMetrics
import HeraldMailbox

/// The courier's counters.
struct CourierMetrics: Sendable {
    let connections = Counter(label: MetricName.deviceConnections)
    let refusals = Counter(label: MetricName.deviceRefusals)
    let takeovers = Counter(label: MetricName.deviceTakeovers)
}
