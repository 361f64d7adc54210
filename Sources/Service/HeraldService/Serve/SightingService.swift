import HeraldCourier
import HeraldTrust
import Logging
import ServiceLifecycle

/// Writes the newest connections of devices to the ledger, every few minutes and at the end.
///
/// After a crash, those since the last writing are missing.
struct SightingService: Service {
    private static let interval = Duration.seconds(300)
    /// The most that one transaction of the ledger writes.
    private static let share = 2000

    let sightings: DeviceSightings
    let store: any TrustStore
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while true {
                do { try await Task.sleep(for: SightingService.interval) } catch { return }
                await write()
            }
        }
        await write()
    }

    private func write() async {
        var rest = sightings.take()[...]
        while !rest.isEmpty {
            do {
                try await store.note(Array(rest.prefix(SightingService.share)))
            } catch {
                logger.warning("the last connections of devices cannot be written now", metadata: ["error": "\(error)"])
                return sightings.putBack(rest)
            }
            rest = rest.dropFirst(SightingService.share)
        }
    }
}
