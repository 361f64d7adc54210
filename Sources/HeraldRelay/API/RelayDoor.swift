import Foundation
import HTTPTypes
import HeraldModel
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
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

/// The relay's door: health, metrics, and an API for those who queue from other machines or languages.
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

    package func run() async throws {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RelayFailures(logger: logger))
        router.get("health") { _, _ in try report() }
        router.get("health/live") { _, _ in RelayReply.json(Array(#"{"status":"live"}"#.utf8)) }
        router.get("metrics") { _, _ in RelayReply.text(metrics(), type: "text/plain; version=0.0.4; charset=utf-8") }
        router.get("openapi.yaml") { _, _ in RelayReply.text(RelayDescription.yaml, type: "application/yaml") }
        if let token = configuration.token {
            let routes = router.group("v1").add(middleware: RelayToken(token: Array(token.utf8)))
            RelayRoutes(store: store, clock: clock).add(to: routes)
        }
        // Hummingbird tells of each start and stop; what failed is thrown.
        var quiet = logger
        quiet.logLevel = .critical
        let port = configuration.port
        let application = Application(
            responder: router.buildResponder(),
            server: .http1(
                configuration: HTTP1Channel.Configuration(idleTimeout: TimeAmount(configuration.idleTimeout))
            ),
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.host, port: port),
                serverName: "herald-relay",
                availableConnectionsDelegate: .maximum(configuration.maximumConnections, logger: quiet)
            ),
            onServerRunning: { channel in isOpen(channel.localAddress?.port ?? port) },
            logger: quiet
        )
        do {
            try await application.run()
        } catch let error as IOError {
            let place = "\(configuration.host):\(port)"
            let why =
                error.errnoCode == EADDRINUSE
                ? "it is in use: choose another --relay-port (0 picks a free one)" : "\(error)"
            throw RelayStoreError(.unusable, "cannot listen on \(place): \(why)")
        }
    }

    private func report() throws -> Response {
        let problems = health.problems
        let report = RelayReport(
            status: problems.isEmpty ? "ready" : "failing",
            problems: problems,
            notes: health.notes,
            oldestUnsentSeconds: health.progress?.oldestUnsentSeconds
        )
        return try RelayReply.json(report, status: problems.isEmpty ? .ok : .serviceUnavailable)
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
