import Foundation
import HeraldConsole
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// The console of a service: the admin API, the gauges and what the pages show.
struct ServiceConsole: Sendable {
    let console: Console
    let gauges: ServiceGauges
    let live: LiveConsole

    init(
        _ assembly: ServiceAssembly,
        watches: ServiceWatches,
        ports: ServiceListeners.Ports,
        access: ConsoleAccess,
        audit: AuditFile,
        metrics: PrometheusRegistry,
        started: WallTime
    ) throws {
        let administration = ServiceAdministration(
            assembly: assembly,
            watch: watches.trust,
            clockWatch: watches.clock,
            started: started
        )
        let search = ServiceSearch(assembly)
        let tallies = ServiceTallies(journal: assembly.journal, clock: assembly.clock, turns: search.turns)
        Self.answerNodes(assembly, administration, search: search, tallies: tallies)
        let gauges = ServiceGauges(assembly, administration)
        self.gauges = gauges
        live = LiveConsole(assembly, administration, search, metrics: metrics)
        console = try Console(
            configuration: Self.configuration(assembly),
            rows: AdminAPI.all,
            api: Self.operations(
                assembly,
                administration,
                search: search,
                tallies: tallies,
                apiPort: ports.api
            ),
            health: administration.health,
            live: live,
            access: access,
            audit: audit,
            clock: ServiceClock(),
            metrics: metrics,
            readGauges: { gauges.read() },
            logger: assembly.logger
        )
    }

    /// The work of each request of the admin API.
    private static func operations(
        _ assembly: ServiceAssembly,
        _ administration: ServiceAdministration,
        search: ServiceSearch,
        tallies: ServiceTallies,
        apiPort: Int
    ) -> AdminWork {
        var api = AdminWork()
        administration.register(&api)
        let connections = assembly.configuration.consoleConnections
        api.register(journal: search, connections: connections)
        api.register(tallies: tallies)
        api.register(inbox: ServiceInbox(assembly), connections: connections)
        api.register(send: ServiceSender(assembly, port: apiPort).send)
        ServiceTools(assembly: assembly).register(&api)
        return api
    }

    private static func configuration(_ assembly: ServiceAssembly) -> ConsoleConfiguration {
        let configuration = assembly.configuration
        var console = ConsoleConfiguration(
            host: configuration.consoleHost,
            port: configuration.consolePort,
            socketPath: assembly.folder.controlSocketPath
        )
        console.hostnames = configuration.hostnames
        if let host = WebAddress.read(configuration.consoleURL)?.host { console.hostnames.append(host) }
        console.isProxy = { [proxies = configuration.consoleProxies] address in
            proxies.contains { $0.contains(address) }
        }
        console.mode = configuration.consoleMode
        if configuration.letsSendersDrill { console.drillsRole = .sender }
        console.tls = assembly.listeners.consoleTLS
        console.maximumConnections = configuration.consoleConnections
        return console
    }

    /// Answers the questions of the other nodes of a cluster.
    private static func answerNodes(
        _ assembly: ServiceAssembly,
        _ administration: ServiceAdministration,
        search: ServiceSearch,
        tallies: ServiceTallies
    ) {
        assembly.storage.cluster?.questions.answer { [journal = assembly.journal] question, limit in
            try await journal.ownAnswer(question, limit: limit)
        } search: {
            try await search.page($0)
        } tallies: {
            try await tallies.ownTallies($0)
        } report: {
            administration.nodeReport
        } disconnect: { [postOffice = assembly.delivery.postOffice] in
            $0.perform(at: postOffice)
        }
    }
}
