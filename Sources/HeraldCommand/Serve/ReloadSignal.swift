import ServiceLifecycle
import UnixSignals

/// Reads the trust folder again on SIGHUP, as operators expect; it is looked at every second anyway.
struct ReloadSignal: Service {
    let watch: TrustWatch

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in await UnixSignalsSequence(trapping: .sighup) {
                // What could not be read is in the log, and what was read before stays in force.
                try? watch.reload()
            }
        }
    }
}
