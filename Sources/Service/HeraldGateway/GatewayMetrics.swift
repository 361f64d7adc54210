import CoreMetrics
import HeraldMailbox
import HeraldModel
import NIOCore

/// Why Herald cuts a provider's connection off: the label `reason`, which docs/metrics.md explains.
enum CutOffReason: String, CaseIterable {
    case `protocol`
    case headerBlock = "header_block"
    case controlFlood = "control_flood"
    case resetFlood = "reset_flood"
    case settingsTimeout = "settings_timeout"
    case tokenFlood = "token_flood"
    case slow
}

/// The provider API's counters.
struct GatewayMetrics: Sendable {
    let connections = Counter(label: MetricName.providerConnections)
    private let accepted = Counter(label: MetricName.providerRequests, dimensions: [("status", "200")])
    private let created = Counter(label: MetricName.providerRequests, dimensions: [("status", "201")])
    private let noContent = Counter(label: MetricName.providerRequests, dimensions: [("status", "204")])
    private let refused: [RefusalReason: Counter]
    private let ended: [CutOffReason: Counter]
    private let duration = Timer(label: MetricName.providerRequestDuration)

    init() {
        refused = Dictionary(
            uniqueKeysWithValues: RefusalReason.allCases.map { reason in
                let dimensions = [("status", "\(reason.httpStatus)"), ("reason", reason.rawValue)]
                return (reason, Counter(label: MetricName.providerRequests, dimensions: dimensions))
            }
        )
        ended = Dictionary(
            uniqueKeysWithValues: CutOffReason.allCases.map { reason in
                let dimensions = [("reason", reason.rawValue)]
                return (reason, Counter(label: MetricName.providerConnectionsCutOff, dimensions: dimensions))
            }
        )
    }

    /// Counts an accepted request, and the time that it took.
    func count(_ status: ReplyStatus, after duration: TimeAmount) {
        self.duration.recordNanoseconds(duration.nanoseconds)
        switch status {
        case .created: created.increment()
        case .noContent: noContent.increment()
        default: accepted.increment()
        }
    }

    /// Counts a refused request.
    func count(_ refusalReason: RefusalReason) {
        refused[refusalReason]?.increment()
    }

    /// Counts a request that a drill refused with a status of its own; its reason may be any text, so it is not a label.
    func countDrilled(_ status: ReplyStatus) {
        Counter(
            label: MetricName.providerRequests,
            dimensions: [("status", "\(status.rawValue)"), ("reason", "drill")]
        ).increment()
    }

    /// Counts a connection that Herald cut off.
    func countCutOff(_ reason: CutOffReason) {
        ended[reason]?.increment()
    }
}
