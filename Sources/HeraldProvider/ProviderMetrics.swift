import CoreMetrics

/// What a client counts, through the process's metrics (swift-metrics).
struct ProviderMetrics: Sendable {
    let accepted: Counter
    let refused: Counter
    let ambiguous: Counter
    let unsent: Counter
    let cancelled: Counter
    /// From the call of `send` to its end.
    let duration: CoreMetrics.Timer
    /// Repetitions after a pause.
    let repetitions: Counter
    /// Requests that moved to another connection untouched.
    let moves: Counter
    let timeouts: Counter
    /// Attempts to connect, and those that came to nothing.
    let connections: Counter
    let failures: Counter
    /// Of all clients of the process together: each adds and takes away its own.
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
        duration = CoreMetrics.Timer(label: "herald_client_send_seconds", dimensions: [], factory: factory)
        repetitions = counter("herald_client_repetitions_total")
        moves = counter("herald_client_moves_total")
        timeouts = counter("herald_client_timeouts_total")
        connections = counter("herald_client_connections_total")
        failures = counter("herald_client_connection_failures_total")
        open = Meter(label: "herald_client_connections_open", dimensions: [], factory: factory)
    }
}
