import HeraldModel
import HeraldWeb
import Hummingbird
import Logging
import ServiceLifecycle

/// Where the relay can be asked over HTTP, and who may.
package struct RelayDoorConfiguration: Sendable {
    /// Loopback unless the operator says otherwise.
    package var host: String
    /// 0 picks a free port.
    package var port: Int
    /// The bearer token of `/v1`; nil: there is no `/v1`.
    package var token: String?
    /// The most connections at one time; more wait in the system's queue.
    package var maximumConnections = 256
    /// How long a connection may be silent.
    package var idleTimeout: Duration = .seconds(30)

    package init(host: String, port: Int, token: String?) {
        self.host = host
        self.port = port
        self.token = token
    }
}

/// What the relay can be asked: health, metrics, and an API for those who queue from other machines or languages.
///
///     GET /health /health/live      anybody who reaches the port
///     GET /metrics                  the same
///     GET /openapi.yaml             what all these requests are
///     /v1/…                         with the bearer token
package struct RelayDoor: Service {
    let configuration: RelayDoorConfiguration
    let store: any RelayStore
    let health: RelayHealth
    let clock: any WallClock
    let logger: Logger
    let metrics: @Sendable () -> String
    let isOpen: @Sendable (Int) -> Void

    /// Makes the door of a relay.
    /// - Parameters:
    ///   - configuration: Where, and for whom.
    ///   - relay: Whose queue and health it shows.
    ///   - metrics: The text for Prometheus.
    ///   - isOpen: Told the port once it listens.
    package init(
        _ configuration: RelayDoorConfiguration,
        relay: Relay,
        metrics: @escaping @Sendable () -> String,
        isOpen: @escaping @Sendable (Int) -> Void
    ) {
        self.configuration = configuration
        store = relay.store
        health = relay.health
        clock = relay.clock
        logger = relay.logger
        self.metrics = metrics
        self.isOpen = isOpen
    }

    /// Serves until the group stops.
    /// - Throws: `WebDoorError` if it cannot listen.
    package func run() async throws {
        let place = WebPlace.Address.port(host: configuration.host, port: configuration.port)
        let door = WebDoor(
            WebPlace(door: "relay", place, portOption: "--relay-port", hostOption: "--relay-host"),
            router: router(),
            server: .plain(idleTimeout: configuration.idleTimeout),
            maximumConnections: configuration.maximumConnections,
            name: "herald-relay",
            logger: logger,
            isOpen: isOpen
        )
        try await door.run()
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(
            middleware: WebFailures(logger: logger) { error in
                guard (error as? RelayStoreError)?.code == .unavailable else { return nil }
                return WebRefusal(503, "the queue does not work now: try again")
            }
        )
        router.get("health") { _, _ in try report() }
        router.get("health/live") { _, _ in WebReply.live }
        router.get("metrics") { _, _ in WebReply.metrics(metrics()) }
        router.get("openapi.yaml") { _, _ in WebReply.text(RelayDescription.yaml, type: "application/yaml") }
        if let token = configuration.token {
            let routes = router.group("v1").add(middleware: BearerToken(token, place: "of --api-token"))
            RelayRoutes(store: store, clock: clock).add(to: routes)
        }
        return router
    }

    private func report() throws -> Response {
        let problems = health.problems
        let report = RelayReport(
            status: problems.isEmpty ? "ready" : "failing",
            problems: problems,
            notes: health.notes,
            oldestUnsentSeconds: health.progress?.oldestUnsentSeconds
        )
        return try WebReply.json(report, status: problems.isEmpty ? .ok : .serviceUnavailable)
    }
}

/// The answer of `/health`.
private struct RelayReport: Encodable {
    let status: String
    let problems: [String]
    let notes: [String]
    let oldestUnsentSeconds: Double?

    private enum CodingKeys: String, CodingKey {
        case status
        case problems
        case notes
        case oldestUnsentSeconds = "oldest_unsent_seconds"
    }
}
