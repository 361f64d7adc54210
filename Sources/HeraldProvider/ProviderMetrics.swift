import CoreMetrics
import Metrics

/// What a client counts, through the process's metrics (swift-metrics).
struct ProviderMetrics: Sendable {
    let accepted = Counter(label: "herald_client_notifications_total", dimensions: [("outcome", "accepted")])
    let refused = Counter(label: "herald_client_notifications_total", dimensions: [("outcome", "refused")])
    let ambiguous = Counter(label: "herald_client_notifications_total", dimensions: [("outcome", "ambiguous")])
    let unsent = Counter(label: "herald_client_notifications_total", dimensions: [("outcome", "unsent")])
    let cancelled = Counter(label: "herald_client_notifications_total", dimensions: [("outcome", "cancelled")])
    /// From the call of `send` to its end.
    let duration = Metrics.Timer(label: "herald_client_send_seconds")
    /// Repetitions after a pause.
    let repetitions = Counter(label: "herald_client_repetitions_total")
    /// Requests that moved to another connection untouched.
    let moves = Counter(label: "herald_client_moves_total")
    let timeouts = Counter(label: "herald_client_timeouts_total")
    /// Attempts to connect, and those that came to nothing.
    let connections = Counter(label: "herald_client_connections_total")
    let failures = Counter(label: "herald_client_connection_failures_total")
    let open = Gauge(label: "herald_client_connections_open")
}
