import HeraldConsole
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
        _ watches: ServiceWatches,
        _ ports: ServiceDoors.Ports,
        _ access: ConsoleAccess,
        _ audit: AuditFile,
        _ metrics: PrometheusRegistry,
        started: WallTime
    ) {
        let administration = ServiceAdministration(
            assembly: assembly,
            watch: watches.trust,
            clockWatch: watches.clock,
            started: started
        )
        let search = ServiceSearch(assembly)
        let tallies = ServiceTallies(journal: assembly.journal, clock: assembly.clock, turns: search.turns)
        Self.answerNodes(assembly, administration, search, tallies)
        let gauges = ServiceGauges(assembly, administration)
        self.gauges = gauges
        live = LiveConsole(assembly, administration, search, metrics: metrics)
        console = Console(
            configuration: Self.configuration(assembly),
            administration: administration,
            live: live,
            access: access,
            audit: audit,
            clock: ServiceClock(),
            metrics: metrics,
            readGauges: { gauges.read() },
            control: [
                TokenRoute(registry: assembly.delivery.registry, postOffice: assembly.delivery.postOffice).route,
                TokenKeyRoute(
                    seal: assembly.trust.seal,
                    live: { [cluster = assembly.storage.cluster] in cluster?.liveTokenKeys ?? [:] },
                    started: started
                ).route,
                TrustSharingRoute(cluster: assembly.storage.cluster).route,
            ],
            journal: search,
            tallies: tallies,
            testing: ConsoleTesting(
                inbox: ServiceInbox(assembly),
                sender: ServiceSender(assembly, port: ports.api),
                tools: ServiceTools(assembly)
            ),
            logger: assembly.logger
        )
    }

    private static func configuration(_ assembly: ServiceAssembly) -> ConsoleConfiguration {
        let configuration = assembly.configuration
        var console = ConsoleConfiguration(
            host: configuration.consoleHost,
            port: configuration.consolePort,
            socketPath: assembly.folder.controlSocketPath
        )
        console.hostnames = configuration.hostnames
        console.mode = configuration.consoleMode
        if configuration.letsSendersDrill { console.drillsRole = .sender }
        console.tls = assembly.doors.consoleTLS
        console.maximumConnections = configuration.consoleConnections
        return console
    }

    /// Answers the questions of the other nodes of a cluster.
    private static func answerNodes(
        _ assembly: ServiceAssembly,
        _ administration: ServiceAdministration,
        _ search: ServiceSearch,
        _ tallies: ServiceTallies
    ) {
        assembly.storage.cluster?.questions.answer { [journal = assembly.journal] question, limit in
            try await journal.ownLines(question, limit: limit)
        } search: {
            try await search.page($0)
        } tallies: {
            try await tallies.ownTallies($0)
        } report: {
            administration.nodeReport
        }
    }
}
