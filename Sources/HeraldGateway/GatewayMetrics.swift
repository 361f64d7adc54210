import CoreMetrics
import HeraldMailbox
import HeraldModel
import NIOCore

/// The provider API's counters.
struct GatewayMetrics: Sendable {
    let connections = Counter(label: MetricName.providerConnections)
    private let accepted = Counter(label: MetricName.providerRequests, dimensions: [("status", "200")])
    private let created = Counter(label: MetricName.providerRequests, dimensions: [("status", "201")])
    private let noContent = Counter(label: MetricName.providerRequests, dimensions: [("status", "204")])
    private let refused: [RefusalReason: Counter]
    private let ended: [String: Counter]
    private let duration = Timer(label: MetricName.providerRequestDuration)

    init() {
        refused = Dictionary(
            uniqueKeysWithValues: RefusalReason.allCases.map { reason in
                let dimensions = [("status", "\(reason.httpStatus)"), ("reason", reason.rawValue)]
                return (reason, Counter(label: MetricName.providerRequests, dimensions: dimensions))
            }
        )
        let reasons = ["protocol", "header_block", "control_flood", "reset_flood", "token_flood", "slow"]
        ended = Dictionary(
            uniqueKeysWithValues: reasons.map { reason in
                (reason, Counter(label: MetricName.providerConnectionsCutOff, dimensions: [("reason", reason)]))
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

    /// Counts a connection that Herald cut off.
    func countCutOff(_ reason: String) {
        ended[reason]?.increment()
    }
}
