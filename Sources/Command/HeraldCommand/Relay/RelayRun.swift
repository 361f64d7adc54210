import ArgumentParser
import CoreMetrics
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldRelay
import HeraldService
import Logging
import ServiceLifecycle
import UnixSignals

/// `herald relay run`: the daemon.
struct RelayRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Send the rows of the queue, until stopped.",
        discussion: """
            Every option is also a key of the configuration file and an environment variable (HERALD_DATABASE). SIGHUP \
            reloads the apps of the file without a restart.

            Example:
              herald relay run --database sqlite:///var/lib/chat/queue.db \\
                --topic com.example.chat \\
                --key AuthKey_ABCDE12345.p8 --team TEAM123456
              herald relay run --config relay.yaml
            """
    )

    @OptionGroup var options: RelayRunOptions

    func run() async throws {
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let environment = ProcessInfo.processInfo.environment
        let manager = ServiceManager(environment: environment)
        manager.starting("opening the queue")
        let settings = try RelaySettings(options, environment: environment)
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        let clock = ServiceClock()
        let (log, _) = try LogWriter.bootstrap(
            settings.service.logFormat,
            level: settings.service.logLevel,
            environment: environment
        )
        defer { log.flush() }
        let logger = Logger(label: "herald.relay")
        let lock = try QueueLock.take(settings.database)
        defer { withExtendedLifetime(lock) {} }
        // Credentials and tokens first, so that a start that fails leaves the database as it was, and makes none.
        let routes = try RouteList(settings.apps, settings.service.relay, readToken: TokenFile.read)
        let token = try settings.service.tokenFile.map(RelayRun.token)
        let store: RelayStore
        do {
            store = try RelayStore.open(settings.database, tables: settings.tables)
            for warning in try await store.prepare() { logger.warning("\(warning)") }
        } catch {
            if let token, token.isNew { unlink(token.path) }
            throw error
        }
        let relay = Relay(
            configuration: settings.service.relay,
            routes: routes,
            store: store,
            owner: RelayRun.owner(),
            clock: clock,
            logger: logger
        )
        if lock != nil {
            // The relay that held rows of this file is dead. Whatever it sent has arrived after the settling time.
            let count = try await store.takeOver(at: clock.now() + settings.service.relay.settling)
            if count > 0 {
                logger.notice("took over the rows of a relay that did not stop cleanly", metadata: ["rows": "\(count)"])
            }
        }
        BuildMetric.record()
        var listening = RelayAPIConfiguration(
            host: settings.service.host,
            hostnames: settings.service.hostnames,
            port: settings.service.port,
            token: token?.text
        )
        listening.maximumConnections = DescriptorLimit.share(of: listening.maximumConnections)
        let listener = RelayAPI(
            listening,
            relay: relay,
            metrics: { metrics.exposition },
            isOpen: { port in
                Terminal.announce("relay  http://\(HostPort(host: settings.service.host, port: port))")
                Terminal.announce("ready")
                manager.ready("sending", logger)
            }
        )
        let reload = RelayReload(signals: hangups, relay: relay, manager: manager, logger: logger) { [options] in
            try RelaySettings(options, environment: ProcessInfo.processInfo.environment).apps
        }
        let queue = Watchdog.Part(name: "queue") { answer in await store.probe(answer) }
        let services: [any Service] = [
            relay, listener, reload, Watchdog(manager, parts: [queue], logger: logger),
        ]
        var group = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) },
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: HeraldLogHandler.lifecycle)
        )
        group.maximumGracefulShutdownDuration = settings.service.relay.timeout + .seconds(5)
        try await ServiceGroup(configuration: group).run()
    }

    /// The relay's name among those that share a queue.
    private static func owner() -> String {
        let host = ProcessInfo.processInfo.hostName.prefix(64)
        return "\(host):\(getpid()):\(Hex.random(bytes: 4))"
    }

    /// The API's bearer token: the file's, or a new one that is put there.
    private static func token(_ path: String) throws -> (text: String, path: String, isNew: Bool) {
        if FileManager.default.fileExists(atPath: path) {
            let token = try TokenFile.read(path)
            guard token.utf8.count >= 16 else {
                throw CommandError(
                    .configuration,
                    "\(path) holds no token of at least 16 characters: remove it, and the relay makes one"
                )
            }
            return (token, path, false)
        }
        let token = Hex.random(bytes: 32)
        try SafeFile.write(Array((token + "\n").utf8), to: path, mode: 0o600)
        return (token, path, true)
    }
}

/// Reads the apps again on SIGHUP.
struct RelayReload: Service {
    let signals: UnixSignalsSequence
    let relay: Relay
    let manager: ServiceManager
    let logger: Logger
    let read: @Sendable () throws -> [RelayApp]

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in signals {
                manager.reloading()
                do {
                    let apps = try read()
                    try relay.replace(apps)
                    logger.notice("apps reloaded", metadata: ["apps": "\(apps.count)"])
                } catch {
                    logger.error("apps not reloaded; the present ones stay in force", metadata: ["error": "\(error)"])
                }
                manager.reloaded()
            }
        }
    }
}
