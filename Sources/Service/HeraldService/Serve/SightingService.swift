import HeraldCourier
import HeraldMailbox
import HeraldTrust
import Logging
import ServiceLifecycle

/// Writes the newest connections of devices to the ledger, and counts the fleet each hour.
///
/// It writes every few minutes and at the end; at once those of new devices, and the announcements that devices have.
///
/// Open connections count anew every ``DeviceSighting/sharedEvery``, so that ledgers show who is offline. After a crash,
/// the connections since the last writing are missing.
struct SightingService: Service {
    private static let interval = Duration.seconds(300)
    private static let pause = Duration.seconds(1)
    /// The most that one transaction of the ledger writes.
    private static let share = 2000

    let courier: Courier
    let store: any TrustStore
    let logger: Logger
    let fleet: FleetGauges

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await writeRegularly() }
                group.addTask {
                    for await _ in courier.sightings.urgent.stream {
                        await write()
                        // A fleet that is activated is written together.
                        try? await Task.sleep(for: SightingService.pause)
                    }
                }
            }
        }
        await write()
    }

    private func writeRegularly() async {
        let rounds = Int(DeviceSighting.sharedEvery / SightingService.interval)
        let perHour = Int(.seconds(3600) / SightingService.interval)
        for round in 1... {
            if (round - 1).isMultiple(of: perHour) { await fleet.measure() }
            do { try await Task.sleep(for: SightingService.interval) } catch { return }
            courier.noteConnected(part: round % rounds, of: rounds)
            await write()
        }
    }

    private func write() async {
        let sightings = courier.sightings
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
