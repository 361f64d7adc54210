import ArgumentParser
import CSignals
import Configuration
import CoreMetrics
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldService
import Logging
import UnixSignals

/// `herald serve`: the service itself.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the service.",
        discussion: """
            An empty data folder is a working service: the first start makes authorities, certificates and keys in it.
            Every option is also a key of the configuration file (api-port: 2197) and an environment variable \
            (HERALD_API_PORT=2197); the command line wins over the environment, and that over the file.

            Example:
              herald serve --hostname push.example.com --host 0.0.0.0 --data /var/lib/herald
            """
    )

    @Option(help: ArgumentHelp("A YAML file with these options as keys.", valueName: "file"))
    var config: String?

    // Groups of this command itself: ArgumentParser's debug checks read each level of nested groups five times.
    @OptionGroup(title: ServerSettings.Basics.title) var basics: SettingOptions<ServerSettings.Basics>
    @OptionGroup(title: ServerSettings.Listeners.title) var listeners: SettingOptions<ServerSettings.Listeners>
    @OptionGroup(title: ServerSettings.Storage.title) var storage: SettingOptions<ServerSettings.Storage>
    @OptionGroup(title: ClusterSettings.title) var cluster: SettingOptions<ClusterSettings>
    @OptionGroup(title: ServerSettings.Limits.title) var limits: SettingOptions<ServerSettings.Limits>
    @OptionGroup(title: ServerSettings.Trust.title) var trust: SettingOptions<ServerSettings.Trust>
    @OptionGroup(title: ServerSettings.Testing.title) var testing: SettingOptions<ServerSettings.Testing>
    @OptionGroup(title: ServerSettings.Logs.title) var logs: SettingOptions<ServerSettings.Logs>

    /// The options that were typed.
    var typed: [SettingKey: ConfigContent] {
        [
            basics.typed, listeners.typed, storage.typed, cluster.typed, limits.typed, trust.typed, testing.typed,
            logs.typed,
        ]
        .reduce(into: [:]) { $0.merge($1) { typed, _ in typed } }
    }

    /// Reads the command line, the environment and the file.
    /// - Throws: ``CommandError/Code/configuration``.
    func configuration(environment: [String: String]) throws -> ServerConfiguration {
        try ServerConfiguration(Settings(commandLine: typed, environment: environment, file: config))
    }

    func run() async throws {
        do {
            try await serve()
        } catch {
            record(error)
            throw error
        }
    }

    /// Tells those who wait for the service why it ended, if its data folder is there and no other process serves it.
    private func record(_ error: any Error) {
        let code = (error as? CommandError)?.code
        guard let dataPath, code != .folder, code != .folderInUse else { return }
        let words = LogText.escaped("\(error)", limit: 2048)
        ServeRecord(pid: getpid(), error: words).write(to: DataFolder(path: dataPath))
    }

    /// The path of the data folder; nil if the settings cannot be read.
    private var dataPath: String? {
        if case .string(let path)? = typed[.data] { return path }
        guard let settings = try? Settings(file: config) else { return nil }
        return (try? settings.text(.data)) ?? DataFolder.defaultPath
    }

    private func serve() async throws {
        herald_exit_on_bus_error()
        // Trapped before the configuration is read: a reload during a slow start waits. `CSignals` ignores earlier ones.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let environment = ProcessInfo.processInfo.environment
        let manager = ServiceManager(environment: environment)
        manager.starting("starting")
        let configuration = try self.configuration(environment: environment)
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        let (log, threshold) = try LogWriter.bootstrap(
            configuration.logFormat,
            level: configuration.logLevel,
            environment: environment
        )
        defer { log.flush() }
        let logger = Logger(label: "herald")
        for name in Settings.unknownVariables(in: environment) {
            logger.warning("unknown environment variable; Herald ignores it", metadata: ["variable": "\(name)"])
        }
        // The kernel ignores signals that the first process of a container does not trap: one would be lost during the start.
        let stop = configuration.cluster.servers.isEmpty && getpid() != 1 ? nil : await StopSignals()
        var process = ServiceProcess(logger: logger, lifecycleLogger: Logger(label: HeraldLogHandler.lifecycle))
        process.metrics = metrics
        process.threshold = threshold
        process.manager = manager
        process.hangups = hangups
        process.signals = stop == nil ? [.sigterm, .sigint] : []
        process.stop = stop
        process.makeGuest = { try await Demo($0, trust: $1, screenPort: $2, now: $3) }
        process.announce = Terminal.announce
        process.configuration = { [self] in
            try self.configuration(environment: ProcessInfo.processInfo.environment)
        }
        let start = Task { [process] in try await HeraldService(configuration, in: process) }
        try await withThrowingTaskGroup { group in
            group.addTask { await stop?.watch() }
            await stop?.onStop { start.cancel() }
            try await started(start, stop, logger)?.run()
            group.cancelAll()
        }
    }

    /// The service that has started; nil if it was told to stop meanwhile, and has been closed.
    /// - Throws: The reason why it cannot start.
    private func started(
        _ start: Task<HeraldService, any Error>,
        _ stop: StopSignals?,
        _ logger: Logger
    ) async throws -> HeraldService? {
        let result = await start.result
        guard await stop?.isStopping ?? false else { return try result.get() }
        logger.notice("stopped before the start was complete")
        if case .success(let service) = result { await service.close() }
        return nil
    }
}
