import ServiceLifecycle
import UnixSignals

/// Reads the configuration and the trust folder again on SIGHUP.
struct ReloadSignal: Service {
    let signals: UnixSignalsSequence
    let watch: TrustWatch
    let configuration: ConfigurationReload
    let manager: ServiceManager

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in signals {
                manager.reloading()
                await configuration.reload()
                // `watch` has logged the error; the present trust stays in force.
                try? await watch.reload()
                manager.reloaded()
            }
        }
    }
}
