import CoreMetrics
import HeraldJSON
import HeraldModel
import HeraldWeb
import Hummingbird
import Logging
import ServiceLifecycle

/// Address, token and limits of the relay's HTTP listener.
package struct RelayAPIConfiguration: Sendable {
    /// Address to listen on; loopback by default.
    package var host: String
    /// Further names that requests may have as `Host`.
    package var hostnames: [String] = []
    /// Port; 0 picks a free one.
    package var port: Int
    /// Bearer token of `/v1`; nil switches `/v1` off.
    package var token: String?
    /// Maximum number of connections; more wait in the system's queue.
    package var maximumConnections = 256
    /// Time for a silent connection, for the header of a request, and for its body.
    package var requestTimeout: Duration = .seconds(30)

    package init(host: String, hostnames: [String] = [], port: Int, token: String?) {
        self.host = host
        self.hostnames = hostnames
        self.port = port
        self.token = token
    }
}

/// HTTP listener of the relay: health, metrics, and an API for senders on other machines or in other languages.
///
///     GET /health /health/live      for anybody who reaches the port
///     GET /metrics                  the same
///     GET /openapi.yaml             description of all requests
///     /v1/…                         with the bearer token
package struct RelayAPI: Service {
    let configuration: RelayAPIConfiguration
    let context: RelayContext
    let metrics: @Sendable () -> String
    let isOpen: @Sendable (Int) -> Void

    /// Makes the listener of a relay; `metrics` is the text for Prometheus, and `isOpen` gets the port once it listens.
    package init(
        _ configuration: RelayAPIConfiguration,
        relay: Relay,
        metrics: @escaping @Sendable () -> String,
        isOpen: @escaping @Sendable (Int) -> Void
    ) {
        self.configuration = configuration
        context = relay.context
        self.metrics = metrics
        self.isOpen = isOpen
    }

    /// Runs until the service group stops.
    /// - Throws: `WebListenerError` if it cannot listen.
    package func run() async throws {
        let address = ListenAddress.Address.port(host: configuration.host, port: configuration.port)
        let listener = WebListener(
            ListenAddress(listener: "relay", address, portOption: "--relay-port", hostOption: "--relay-host"),
            router: router(),
            server: .http1(
                timeout: configuration.requestTimeout,
                descriptors: configuration.maximumConnections
            ),
            name: "herald-relay",
            logger: context.logger,
            isOpen: isOpen
        )
        try await listener.run()
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(
            middleware: WebFailures(logger: context.logger) { error in
                guard (error as? RelayStoreError)?.code == .unavailable else { return nil }
                return WebRefusal(503, "the queue's database does not work at the moment: try again")
            }
        )
        let words =
            "the relay answers to localhost, to a loopback address, to --relay-host and to each --relay-hostname"
        router.add(middleware: HostCheck(host: configuration.host, names: configuration.hostnames, answersTo: words))
        router.get("health") { _, _ in try report() }
        router.get("health/live") { _, _ in WebReply.live }
        router.get("metrics") { _, _ in
            context.metrics.ready.record(context.health.problems.isEmpty ? 1 : 0)
            return WebReply.metrics(metrics())
        }
        router.get("openapi.yaml") { _, _ in WebReply.bytes(PackageResources.openapi_yaml, type: "application/yaml") }
        let routes = router.group("v1")
        if let token = configuration.token {
            let routes = routes.add(middleware: BearerToken(token, place: "of --api-token"))
            RelayRoutes(store: context.store, clock: context.clock).add(to: routes)
        } else {
            for method in WebMethods.all { routes.on("**", method: method) { _, _ -> Response in throw Self.isOff } }
        }
        return router
    }

    private static let isOff = WebRefusal(404, "the API is off: start the relay with --api-token FILE")

    private func report() throws -> Response {
        let problems = context.health.problems
        let report = RelayReport(
            status: problems.isEmpty ? "ready" : "failing",
            problems: problems,
            notes: context.health.notes,
            oldestUnsentSeconds: context.health.progress?.oldestUnsentSeconds
        )
        return try WebReply.json(report, status: problems.isEmpty ? .ok : .serviceUnavailable)
    }
}

/// The answer of `/health`.
private struct RelayReport: Encodable, SnakeCased {
    let status: String
    let problems: [String]
    let notes: [String]
    let oldestUnsentSeconds: Double?
}
