import CoreMetrics
import HeraldMailbox

/// The courier's counters.
struct CourierMetrics: Sendable {
    let connections = Counter(label: MetricName.deviceConnections)
    let refusals = Counter(label: MetricName.deviceRefusals)
    let registrationsRefused = Counter(label: MetricName.registrationsRefused)
    let takeovers = Counter(label: MetricName.deviceTakeovers)
}
