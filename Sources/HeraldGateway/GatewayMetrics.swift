import CoreMetrics
import HeraldMailbox
import HeraldModel

/// The provider API's counters.
struct GatewayMetrics: Sendable {
    let connections = Counter(label: MetricName.providerConnections)
    private let accepted = Counter(label: MetricName.providerRequests, dimensions: [("status", "200")])
    private let created = Counter(label: MetricName.providerRequests, dimensions: [("status", "201")])
    private let noContent = Counter(label: MetricName.providerRequests, dimensions: [("status", "204")])
    private let refused: [Int: Counter]
    private let ended: [String: Counter]

    init() {
        let statuses = Set(RefusalReason.allCases.map(\.httpStatus))
        refused = Dictionary(
            uniqueKeysWithValues: statuses.map { status in
                (status, Counter(label: MetricName.providerRequests, dimensions: [("status", "\(status)")]))
            }
        )
        let reasons = ["protocol", "header_block", "control_flood", "reset_flood", "token_flood", "slow"]
        ended = Dictionary(
            uniqueKeysWithValues: reasons.map { reason in
                (reason, Counter(label: MetricName.providerConnectionsCutOff, dimensions: [("reason", reason)]))
            }
        )
    }

    /// Counts an accepted request.
    func count(_ status: ReplyStatus) {
        switch status {
        case .created: created.increment()
        case .noContent: noContent.increment()
        default: accepted.increment()
        }
    }

    /// Counts a refused request.
    func count(_ refusalReason: RefusalReason) {
        refused[refusalReason.httpStatus]?.increment()
    }

    /// Counts a connection that Herald cut off.
    func countCutOff(_ reason: String) {
        ended[reason]?.increment()
    }
}
