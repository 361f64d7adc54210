import HeraldMailbox

/// A time series of the console: its name, and where its values come from.
struct SeriesDescription: Sendable {
    enum Source: Sendable {
        /// The sum of those series of counters whose labels match, as a rate a second.
        case rate([String: @Sendable (_ labels: String) -> Bool])
        /// The sum of a gauge's series.
        case level(String)
        /// The value of a histogram that a share of its values does not exceed.
        case share(Double, of: String)
    }

    let name: String
    let source: Source

    init(_ name: String, _ source: Source) {
        self.name = name
        self.source = source
    }

    /// The rate of journal lines with an outcome.
    fileprivate init(_ outcome: JournalOutcome) {
        let label = "outcome=\"\(outcome.rawValue)\""
        self.init(outcome.rawValue, .rate([MetricName.journalLines: { $0 == label }]))
    }

    /// The rate of a counter, over all its series.
    fileprivate init(_ name: String, rate metric: String) {
        self.init(name, .rate([metric: { _ in true }]))
    }

    func reading(_ metrics: PrometheusRegistry) -> SeriesReading {
        switch source {
        case .rate(let counters):
            .total(counters.reduce(0) { $0 + (metrics.sum(of: $1.key, where: $1.value) ?? 0) })
        case .level(let metric): metrics.sum(of: metric) { _ in true }.map { .level($0) } ?? .unknown
        case .share(let share, let metric):
            metrics.distribution(of: metric).map { .distribution($0, share: share) } ?? .unknown
        }
    }
}

/// The time series of the console; names are part of the API.
enum SeriesCatalog {
    static let all: [SeriesDescription] =
        // Not all refusals have a line.
        JournalOutcome.allCases.filter { $0 != .refused }.map { SeriesDescription($0) } + [
            SeriesDescription("requests", rate: MetricName.providerRequests),
            SeriesDescription(
                "requests_refused",
                .rate([
                    MetricName.providerRequests: { $0.contains("reason=") },
                    MetricName.binaryNotifications: { $0 != "status=\"0\"" },
                ])
            ),
            SeriesDescription("binary_notifications", rate: MetricName.binaryNotifications),
            SeriesDescription("provider_connections", rate: MetricName.providerConnections),
            SeriesDescription("device_connections", rate: MetricName.deviceConnections),
            SeriesDescription("broadcasts", rate: MetricName.broadcastsPublished),
            SeriesDescription("devices_connected", .level(MetricName.devicesConnected)),
            SeriesDescription("notifications_waiting", .level(MetricName.notificationsWaiting)),
            SeriesDescription("notification_memory_bytes", .level(MetricName.notificationBytes)),
            SeriesDescription("store_bytes", .level("herald_store_size_bytes")),
            SeriesDescription("store_free_bytes", .level("herald_store_free_bytes")),
            SeriesDescription("store_writes_pending", .level("herald_store_writes_pending")),
            SeriesDescription("delivery_seconds_p50", .share(0.5, of: MetricName.deliveryDuration)),
            SeriesDescription("delivery_seconds_p99", .share(0.99, of: MetricName.deliveryDuration)),
            SeriesDescription("request_seconds_p50", .share(0.5, of: MetricName.providerRequestDuration)),
            SeriesDescription("request_seconds_p99", .share(0.99, of: MetricName.providerRequestDuration)),
            SeriesDescription("commit_seconds_p99", .share(0.99, of: MetricName.storeCommitDuration)),
        ]

    static let names = all.map(\.name)
}
