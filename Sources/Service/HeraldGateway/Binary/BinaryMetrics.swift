import CoreMetrics
import HeraldMailbox
import HeraldModel

/// The counters of the binary interface and of the feedback service.
struct BinaryMetrics: Sendable {
    let connections = Counter(label: MetricName.binaryConnections)
    let feedbackConnections = Counter(label: MetricName.feedbackConnections)
    /// Tuples of lists that a reader has confirmed.
    let feedbackTuples = Counter(label: MetricName.feedbackTuples)
    let accepted: Counter
    private let statuses: [BinaryStatus: Counter]

    init() {
        statuses = Dictionary(
            uniqueKeysWithValues: BinaryStatus.known.map { status in
                (status, Counter(label: MetricName.binaryNotifications, dimensions: [("status", "\(status.rawValue)")]))
            }
        )
        accepted =
            statuses[.noError] ?? Counter(label: MetricName.binaryNotifications, dimensions: [("status", "0")])
    }

    /// Counts a refused notification, or an error response at the end of a connection.
    func count(_ status: BinaryStatus) {
        statuses[status]?.increment()
    }
}
