import ServiceLifecycle
import UnixSignals

/// Reads the configuration and the trust folder again on SIGHUP; the folder is looked at every second anyway.
struct ReloadSignal: Service {
    let watch: TrustWatch
    let configuration: ConfigurationReload

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in await UnixSignalsSequence(trapping: .sighup) {
                configuration.reload()
                // What could not be read is in the log, and what was read before stays in force.
                try? watch.reload()
            }
        }
    }
}
