package import HeraldWeb
import Hummingbird
package import Logging

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
    /// Run it as a service: it ends with the group, or throws `WebDoorError` if it cannot listen.
    package func port(_ isOpen: @escaping @Sendable (Int) -> Void) -> WebDoor {
        let router = router()
        let routes = router.group("v1").add(middleware: BearerToken(configuration.token, place: "in run/admin.token"))
        AdminRoutes(administration: administration).add(to: routes)
        return door(router, at: .port(host: configuration.host, port: configuration.port), isOpen)
    }

    /// The door for Herald's own commands; `isOpen` is told once it listens.
    package func socket(_ isOpen: @escaping @Sendable () -> Void) -> WebDoor {
        let router = router()
        let routes = router.group("v1")
        let admin = AdminRoutes(administration: administration)
        admin.add(to: routes)
        admin.add(control, to: routes)
        let path = configuration.socketPath
        return door(router, at: .socket(path: path)) { _ in
            // Its folder keeps others out already; the mode says so to whoever looks.
            chmod(path, 0o600)
            isOpen()
        }
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(
            middleware: WebFailures(logger: logger) { error in
                (error as? AdminError).map { WebRefusal($0.code.httpStatus, $0.message) }
            }
        )
        let health = router.group("health")
        health.get { _, _ in try self.health() }
        health.get("ready") { _, _ in try self.health() }
        health.get("live") { _, _ in WebReply.live }
        router.get("metrics") { _, _ in WebReply.metrics(metrics.exposition) }
        router.get("openapi.yaml") { _, _ in WebReply.text(APIDescription.yaml, type: "application/yaml") }
        return router
    }

    private func health() throws -> Response {
        let report = HealthReport(problems: administration.problems, drills: administration.drills.map(\.words))
        return try WebReply.json(report, status: report.status == .ready ? .ok : .serviceUnavailable)
    }

    private func door(
        _ router: Router<BasicRequestContext>,
        at address: WebPlace.Address,
        _ isOpen: @escaping @Sendable (Int) -> Void
    ) -> WebDoor {
        WebDoor(
            WebPlace(door: "console", address, portOption: "--console-port", hostOption: "--console-host"),
            router: router,
            server: .plain(idleTimeout: configuration.idleTimeout),
            maximumConnections: configuration.maximumConnections,
            logger: logger,
            isOpen: isOpen
        )
    }
}
