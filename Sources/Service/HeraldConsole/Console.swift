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
    private let administration: any Administration
    private let live: LiveConsole
    private let metrics: PrometheusRegistry
    /// Sets the gauges that are read on demand.
    private let readGauges: @Sendable () -> Void
    private let access: ConsoleAccess
    private let audit: any ConsoleAudit
    /// The machine's clock, for the audit.
    private let clock: any WallClock
    private let control: [ControlRoute]
    private let testing: ConsoleTesting?
    private let journal: (any JournalSearching)?
    private let tallies: (any JournalCounting)?
    private let logger: Logger

    package init(
        configuration: ConsoleConfiguration,
        administration: any Administration,
        live: LiveConsole,
        access: ConsoleAccess,
        audit: any ConsoleAudit,
        clock: any WallClock,
        metrics: PrometheusRegistry,
        readGauges: @escaping @Sendable () -> Void = {},
        control: [ControlRoute] = [],
        journal: (any JournalSearching)? = nil,
        tallies: (any JournalCounting)? = nil,
        testing: ConsoleTesting? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.administration = administration
        self.live = live
        self.access = access
        self.audit = audit
        self.clock = clock
        self.metrics = metrics
        self.readGauges = readGauges
        self.control = control
        self.testing = testing
        self.journal = journal
        self.tallies = tallies
        self.logger = logger
    }

    /// The listener for people and monitoring, as a service; calls `isOpen` with the port once it listens.
    package func port(_ isOpen: @escaping @Sendable (Int) -> Void) -> WebListener {
        let words = "the console answers to localhost, to a loopback address, to --console-host and to each --hostname"
        let router = router(HostCheck(host: configuration.host, names: configuration.hostnames, answersTo: words))
        _ = addRoutes(to: router, by: .port(access, configuration))
        let address = ListenAddress.Address.port(host: configuration.host, port: configuration.port)
        return listener(router, at: address, tls: configuration.tls, isOpen)
    }

    /// The listener for Herald's own commands; calls `isOpen` once it listens.
    package func socket(_ isOpen: @escaping @Sendable () -> Void) -> WebListener {
        let router = router()
        let routes = addRoutes(to: router, by: .socket)
        AdminRoutes(administration: administration).add(control, to: routes)
        let path = configuration.socketPath
        return listener(router, at: .socket(path: path)) { _ in
            // The folder already excludes other users; the mode shows it.
            chmod(path, 0o600)
            isOpen()
        }
    }

    /// Adds the routes of both listeners.
    private func addRoutes(
        to router: Router<ConsoleContext>,
        by way: ConsoleGate.Way
    ) -> RouterGroup<ConsoleContext> {
        let routes = router.group("v1").add(middleware: ConsoleGate(way: way, audit: audit, clock: clock))
        AdminRoutes(administration: administration).add(to: routes)
        AccessRoutes(access: access, configuration: configuration).add(to: routes)
        AuditRoutes(audit: audit).add(to: routes)
        live.addRoutes(to: routes, connections: configuration.maximumConnections)
        testing?.add(to: routes, connections: configuration.maximumConnections)
        journal.map(JournalRoutes.init)?.add(to: routes)
        tallies.map(TallyRoutes.init)?.add(to: routes)
        return routes
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
        if let check { router.add(middleware: check) }
        if configuration.mode != .apiOnly { ConsolePages().add(to: router) }
        let health = router.group("health")
        health.get { _, _ in try self.health() }
        health.get("ready") { _, _ in try self.health() }
        health.get("live") { _, _ in WebReply.live }
        router.get("metrics") { _, _ in
            readGauges()
            return WebReply.metrics(metrics.exposition)
        }
        router.get("openapi.yaml") { _, _ in WebReply.bytes(PackageResources.openapi_yaml, type: "application/yaml") }
        return router
    }

    private func health() throws -> Response {
        let report = HealthReport(
            problems: administration.problems,
            warnings: administration.warnings,
            drills: administration.drills.map(\.words),
            notes: testing?.notes ?? []
        )
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
