package import HeraldModel
package import HeraldWeb
import Hummingbird
package import Logging

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Health, metrics and admin API, on two listeners with the same requests: a port, where the admin API requires a bearer
/// token, and a Unix socket in the data folder, which the file system protects.
///
///     GET / and the paths of ConsolePages         the page for people
///     GET /health /health/live /health/ready      for anybody who reaches the port
///     GET /metrics                                the same; no label contains a device, a token or a topic
///     GET /openapi.yaml                           description of all requests
///     /v1/…                                       the admin API
package struct Console: Sendable {
    private let configuration: ConsoleConfiguration
    private let health: @Sendable () -> HealthReport
    private let metrics: PrometheusRegistry
    /// Sets the gauges that are read on demand.
    private let readGauges: @Sendable () -> Void
    private let access: ConsoleAccess
    private let audit: any ConsoleAudit
    /// The machine's clock, for the audit.
    private let clock: any WallClock
    private let api: AdminWork
    private let description: ConsoleDescription
    private let logger: Logger

    /// Makes a console for the rows of the admin API.
    ///
    /// `api` is the work of each row but those of the console itself: access, the audit and what `live` has. The logger
    /// gets unexpected errors.
    /// - Throws: ``AdminWork/Incomplete`` for a row that nobody has registered work for.
    package init(
        configuration: ConsoleConfiguration,
        rows: [OperationRow],
        api: AdminWork,
        health: @escaping @Sendable () -> HealthReport,
        live: LiveConsole,
        access: ConsoleAccess,
        audit: any ConsoleAudit,
        clock: any WallClock,
        metrics: PrometheusRegistry,
        readGauges: @escaping @Sendable () -> Void = {},
        logger: Logger
    ) throws {
        var api = api
        AccessRoutes(access: access, configuration: configuration, audit: audit).register(&api)
        live.register(&api, connections: configuration.maximumConnections)
        try api.check(rows)
        description = ConsoleDescription(of: rows)
        self.api = api
        self.configuration = configuration
        self.health = health
        self.access = access
        self.audit = audit
        self.clock = clock
        self.metrics = metrics
        self.readGauges = readGauges
        self.logger = logger
    }

    /// The listener for people and monitoring, as a service; calls `isOpen` with the port once it listens.
    package func port(_ isOpen: @escaping @Sendable (Int) -> Void) -> WebListener {
        let words =
            "the console answers to localhost, to a loopback address, to --console-host, to each --hostname and to the host "
            + "of --console-url"
        let router = router(HostCheck(host: configuration.host, names: configuration.hostnames, answersTo: words))
        addRoutes(to: router, by: .port(access, configuration))
        let address = ListenAddress.Address.port(host: configuration.host, port: configuration.port)
        return listener(router, at: address, tls: configuration.tls, isOpen)
    }

    /// The listener for Herald's own commands; calls `isOpen` once it listens.
    package func socket(_ isOpen: @escaping @Sendable () -> Void) -> WebListener {
        let router = router()
        addRoutes(to: router, by: .socket)
        let path = configuration.socketPath
        return listener(router, at: .socket(path: path)) { _ in
            // The folder already excludes other users; the mode shows it.
            chmod(path, 0o600)
            isOpen()
        }
    }

    private func addRoutes(to router: Router<ConsoleContext>, by way: ConsoleGate.Way) {
        let gate = ConsoleGate(way: way, rows: api.rows, audit: audit, clock: clock)
        var isSocket = false
        if case .socket = way { isSocket = true }
        api.add(to: router.group("v1").add(middleware: gate), isSocket: isSocket)
    }

    private func router(_ check: HostCheck<ConsoleContext>? = nil) -> Router<ConsoleContext> {
        let router = Router(context: ConsoleContext.self)
        router.add(
            middleware: WebFailures(logger: logger) { error in
                (error as? AdminError).map {
                    WebRefusal($0.code.httpStatus, $0.message, retryAfter: $0.retryAfter)
                }
            }
        )
        if let check {
            router.add(middleware: ForwardedRequest(isProxy: configuration.isProxy))
            router.add(middleware: check)
        }
        if configuration.mode != .apiOnly { ConsolePages().add(to: router) }
        let health = router.group("health")
        health.get { _, _ in try answer() }
        health.get("ready") { _, _ in try answer() }
        health.get("live") { _, _ in WebReply.live }
        router.get("metrics") { _, _ in
            readGauges()
            return WebReply.metrics(metrics.exposition)
        }
        router.get("openapi.yaml") { _, _ in try description.answer() }
        return router
    }

    private func answer() throws -> Response {
        let report = health()
        return try WebReply.json(report, status: report.status == .ready ? .ok : .serviceUnavailable)
    }

    private func listener(
        _ router: Router<ConsoleContext>,
        at address: ListenAddress.Address,
        tls: WebTLS? = nil,
        _ isOpen: @escaping @Sendable (Int) -> Void
    ) -> WebListener {
        WebListener(
            ListenAddress(listener: "console", address, portOption: "--console-port", hostOption: "--console-host"),
            router: router,
            server: .http1(
                timeout: configuration.requestTimeout,
                descriptors: configuration.maximumConnections,
                tls: tls
            ),
            logger: logger,
            isOpen: isOpen
        )
    }
}
