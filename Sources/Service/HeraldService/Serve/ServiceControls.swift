import HeraldCourier
package import HeraldGateway
package import HeraldMailbox
package import HeraldModel
import HeraldTrust

/// The parts of a service that a program in the same process moves: `herald exam`.
package struct ServiceControls: Sendable {
    package let drills: DrillService
    package let catcher: CatchService
    package let clock: ServiceClock
    private let registry: Registry
    private let seal: TokenSeal

    init(_ assembly: ServiceAssembly) {
        (drills, catcher, clock) = (assembly.trials.drills, assembly.trials.catcher, assembly.clock)
        (registry, seal) = (assembly.delivery.registry, assembly.trust.seal)
    }

    /// Registers an app on devices that never connect.
    /// - Returns: The registrations and their tokens, in the order of the devices.
    /// - Throws: The refusal of a registration, or an error of the store.
    package func register(_ app: App, on devices: [DeviceNumber]) async throws -> [(slot: Slot, token: DeviceToken)] {
        var registered: [(Slot, DeviceToken)] = []
        for device in devices {
            guard let result = await registry.register([app], on: device, fence: 0)[app] else { continue }
            let registration = try result.get()
            registered.append((registration.slot, seal.token(for: registration)))
        }
        return registered
    }
}
