import HeraldConsole
import HeraldModel
import ServiceLifecycle

/// Reads the service's state once a second for the console.
struct LiveWatch: Service {
    let live: LiveConsole
    let gauges: ServiceGauges
    let clock: any WallClock

    func run() async throws {
        let start = ContinuousClock.now
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                gauges.readOften()
                live.look(uptime: start.duration(to: .now))
                // In the middle of each second, so that none is left out or counted twice.
                let late = (clock.now().milliseconds + 500) % 1000
                do { try await Task.sleep(for: .milliseconds(1000 - late)) } catch { return }
            }
        }
    }
}
