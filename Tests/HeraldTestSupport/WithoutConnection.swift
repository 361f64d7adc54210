package import HeraldMailbox
package import HeraldModel

/// Changes of the registry in tests that have no connection, and no order of connections.
extension RegistryStore {
    package func register(_ slot: Slot, at moment: WallTime) async throws -> Registration {
        try await register(slot, at: moment, fence: 0)
    }

    package func unregister(_ slot: Slot, at moment: WallTime) async throws {
        try await unregister(slot, at: moment, fence: 0)
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        try await setEnabled(enabled, for: slot, fence: 0)
    }
}

extension Registry {
    package func arrive(_ id: DeviceID) async throws -> Arrival { try await arrive(id) { $0(.zero) } }

    package func register(_ apps: [App], on device: DeviceNumber) async -> [App: Result<Registration, any Error>] {
        await register(apps, on: device, fence: 0)
    }

    package func unregister(_ slots: Set<Slot>) async -> [Slot: Result<Bool, any Error>] {
        await unregister(slots, fence: 0)
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        try await setEnabled(enabled, for: slot, fence: 0)
    }
}
