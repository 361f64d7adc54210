import CoreMetrics

/// Metrics of a client, reported to the process's metrics system (swift-metrics).
struct ProviderMetrics: Sendable {
    let accepted: Counter
    let refused: Counter
    let ambiguous: Counter
    let unsent: Counter
    let cancelled: Counter
    /// From the call of `send` to its return.
    let duration: CoreMetrics.Timer
    let retries: Counter
    /// Requests that moved unprocessed to another connection.
    let moves: Counter
    let timeouts: Counter
    /// Connect attempts, and failed ones.
    let connections: Counter
    let failures: Counter
    /// Open connections of all clients of the process; each client adds and subtracts its own.
    let open: Meter

    init(factory: any MetricsFactory = MetricsSystem.factory) {
        func counter(_ name: String) -> Counter { Counter(label: name, dimensions: [], factory: factory) }
        func outcome(_ name: String) -> Counter {
            Counter(label: "herald_client_notifications_total", dimensions: [("outcome", name)], factory: factory)
        }
        accepted = outcome("accepted")
        refused = outcome("refused")
        ambiguous = outcome("ambiguous")
        unsent = outcome("unsent")
        cancelled = outcome("cancelled")
        duration = CoreMetrics.Timer(label: "herald_client_send_duration_seconds", dimensions: [], factory: factory)
        retries = counter("herald_client_retries_total")
        moves = counter("herald_client_moves_total")
        timeouts = counter("herald_client_timeouts_total")
        connections = counter("herald_client_connections_total")
        failures = counter("herald_client_connection_failures_total")
        open = Meter(label: "herald_client_connections_open", dimensions: [], factory: factory)
    }
}
