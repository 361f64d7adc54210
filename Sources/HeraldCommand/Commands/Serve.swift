import ArgumentParser
import CoreMetrics
import Foundation
import HeraldConsole
import HeraldMailbox
import Logging

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

    @OptionGroup var options: ServeOptions

    func run() async throws {
        let configuration = try options.configuration(environment: ProcessInfo.processInfo.environment)
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        let clock = configuration.clock.makeClock()
        let trueClock = ServiceClock()
        let threshold = LogThreshold(configuration.logLevel)
        LoggingSystem.bootstrap { label in
            HeraldLogHandler(
                label: label,
                format: configuration.logFormat,
                sink: StandardErrorSink(),
                clock: trueClock,
                threshold: threshold
            )
        }
        let logger = Logger(label: "herald")
        for name in Settings.unknownVariables(in: ProcessInfo.processInfo.environment) {
            logger.warning("an environment variable means nothing to Herald", metadata: ["variable": "\(name)"])
        }
        try DataFolder(path: configuration.data).checkSocketPath()
        let folder = try DataFolder.open(configuration.data, mayCreate: true)
        let lock = try FolderLock.take(folder)
        defer { withExtendedLifetime(lock) {} }
        Doors.remove(from: folder)
        let assembly = try await ServiceAssembly.make(configuration, folder: folder, clock: clock, logger: logger)
        let reload = ConfigurationReload(assembly, threshold: threshold) { [options] in
            try options.configuration(environment: ProcessInfo.processInfo.environment)
        }
        do {
            try await ServiceRun(assembly: assembly, metrics: metrics, reload: reload).run()
        } catch {
            Doors.remove(from: folder)
            throw error
        }
        Doors.remove(from: folder)
    }
}
