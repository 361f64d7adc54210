import CoreMetrics
import Metrics

/// Metrics of a relay; no label contains a token or a row.
struct RelayMetrics: Sendable {
    let retries = Counter(label: "herald_relay_retries_total")
    let resolved = Counter(label: "herald_relay_resolved_total")
    let deadTokens = Counter(label: "herald_relay_dead_tokens_total")
    let heldTokens = Counter(label: "herald_relay_held_tokens_total")
    let storeFailures = Counter(label: "herald_relay_store_failures_total")
    let deleted = Counter(label: "herald_relay_rows_deleted_total")
    let sending = Timer(label: "herald_relay_send_duration_seconds")
    let inFlight = Gauge(label: "herald_relay_rows_in_flight")
    let breakers = Gauge(label: "herald_relay_breakers_open")
    /// Recorded at each scrape of the metrics.
    let ready = Gauge(label: "herald_relay_ready")
    private let oldest = Gauge(label: "herald_relay_oldest_unsent_seconds")
    private let queued = Gauge(label: "herald_relay_rows_queued")
    private let scheduled = Gauge(label: "herald_relay_rows_scheduled")
    private let final: [FinalStatus: Counter]

    init() {
        var final: [FinalStatus: Counter] = [:]
        for status in FinalStatus.allCases {
            final[status] = Counter(label: "herald_relay_rows_total", dimensions: [("status", status.rawValue)])
        }
        self.final = final
        breakers.record(0)
    }

    func count(_ status: FinalStatus) {
        final[status]?.increment()
    }

    func show(_ progress: QueueProgress) {
        oldest.record(progress.oldestUnsentSeconds ?? 0)
        queued.record(progress.rows["queued"] ?? 0)
        scheduled.record(progress.scheduled)
    }
}
