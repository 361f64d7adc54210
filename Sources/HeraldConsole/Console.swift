import HTTPTypes
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What operators see and do, on two doors with the same requests: a port, where the admin API wants a bearer token,
/// and a Unix socket in the data folder, where the file system says who may.
///
///     GET /health /health/live /health/ready      anybody who reaches the port
///     GET /metrics                                the same; no metric names a device, a token or a topic
///     GET /openapi.yaml                           what all these requests are
///     /v1/…                                       the admin API
package struct Console: Sendable {
    private let configuration: ConsoleConfiguration
    private let administration: any Administration
    private let metrics: PrometheusRegistry
    private let control: [ControlRoute]
    private let logger: Logger

    package init(
        configuration: ConsoleConfiguration,
        administration: any Administration,
        metrics: PrometheusRegistry,
        control: [ControlRoute] = [],
        logger: Logger
    ) {
        self.configuration = configuration
        self.administration = administration
        self.metrics = metrics
        self.control = control
        self.logger = logger
    }

    /// The door for people and monitoring; `isOpen` is told the port once it listens.
    ///
    /// Run it as a service: it ends with the group, or throws ``ConsoleError`` if it cannot listen.
    package func port(_ isOpen: @escaping @Sendable (Int) -> Void) -> ConsoleDoor {
        let router = router()
        let routes = router.group("v1").add(middleware: AdminToken(token: Array(configuration.token.utf8)))
        AdminRoutes(administration: administration).add(to: routes)
        let responder = router.buildResponder()
        return ConsoleDoor(name: "\(configuration.host):\(configuration.port)") {
            application(responder, .hostname(configuration.host, port: configuration.port)) { channel in
                isOpen(channel.localAddress?.port ?? configuration.port)
            }
        }
    }

    /// The door for Herald's own commands; `isOpen` is told once it listens.
    package func socket(_ isOpen: @escaping @Sendable () -> Void) -> ConsoleDoor {
        let router = router()
        let routes = router.group("v1")
        let admin = AdminRoutes(administration: administration)
        admin.add(to: routes)
        admin.add(control, to: routes)
        let responder = router.buildResponder()
        let path = configuration.socketPath
        return ConsoleDoor(name: path) {
            application(responder, .unixDomainSocket(path: path)) { _ in
                // Its folder keeps others out already; the mode says so to whoever looks.
                chmod(path, 0o600)
                isOpen()
            }
        }
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: AdminFailures(logger: logger))
        let health = router.group("health")
        health.get { _, _ in try self.health() }
        health.get("ready") { _, _ in try self.health() }
        health.get("live") { _, _ in AdminReply.json(bytes: Array(#"{"status":"live"}"#.utf8)) }
        router.get("metrics") { _, _ in
            AdminReply.text(metrics.exposition, type: "text/plain; version=0.0.4; charset=utf-8")
        }
        router.get("openapi.yaml") { _, _ in AdminReply.text(APIDescription.yaml, type: "application/yaml") }
        return router
    }

    private func health() throws -> Response {
        let report = HealthReport(problems: administration.problems, drills: administration.drills.map(\.words))
        return try AdminReply.json(report, status: report.status == .ready ? .ok : .serviceUnavailable)
    }

    private func application(
        _ responder: RouterResponder<BasicRequestContext>,
        _ address: BindAddress,
        _ isOpen: @escaping @Sendable (any Channel) async -> Void
    ) -> Application<RouterResponder<BasicRequestContext>> {
        var quiet = logger
        // Hummingbird tells of each start and stop, and calls a stop by cancellation an error; Herald says itself where
        // its doors are, and what failed is thrown.
        quiet.logLevel = .critical
        return Application(
            responder: responder,
            server: .http1(
                configuration: HTTP1Channel.Configuration(idleTimeout: TimeAmount(configuration.idleTimeout))
            ),
            configuration: ApplicationConfiguration(
                address: address,
                serverName: "herald",
                availableConnectionsDelegate: .maximum(configuration.maximumConnections, logger: quiet)
            ),
            onServerRunning: isOpen,
            logger: quiet
        )
    }
}
