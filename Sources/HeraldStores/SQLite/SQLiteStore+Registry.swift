import GRDB
package import HeraldMailbox
package import HeraldModel

extension SQLiteStore: RegistryStore {
    package func loadRegistry() async throws -> RegistrySnapshot {
        // Nobody changes anything before the registry is loaded, so that two reads see the same.
        async let devices = readers.read { try RegistryTable.loadDevices($0) }
        async let registrations = readers.read { try RegistryTable.loadRegistrations($0) }
        return try await RegistrySnapshot(devices: devices.0, apps: devices.1, registrations: registrations)
    }

    package func number(of device: DeviceID) async throws -> DeviceNumber {
        try await change { database, _ in try RegistryTable.number(of: device, database) }
    }

    package func number(of app: App) async throws -> AppNumber {
        try await change { database, _ in try RegistryTable.number(of: app, database) }
    }

    package func register(_ slot: Slot, at moment: WallTime) async throws -> Registration {
        try await change { database, _ in try RegistryTable.register(slot, at: moment, database) }
    }

    package func unregister(_ slot: Slot, at moment: WallTime) async throws {
        try await change { database, batch in
            guard try RegistryTable.unregister(slot, at: moment, database) else { return }
            batch.discard(slot, .discardedUnregisteredFromStorage, at: moment)
        }
    }

    package func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] {
        try await change { database, _ in try RegistryTable.forgetEnded(device, keeping: limit, database) }
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        try await change { database, batch in
            try RegistryTable.setEnabled(enabled, for: slot, database)
            if !enabled { batch.discard(slot, .discardedDisabledFromStorage, at: batch.now) }
        }
    }

    package func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws {
        try await change { database, _ in try RegistryTable.setSavingPower(saving, for: device, database) }
    }

    package func readDeviceRecord(
        _ device: DeviceNumber,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        readers.submit(isQuick: true, { try RegistryTable.deviceRecord(device, $0) }, done)
    }

    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let text: String?
        do { text = try RegistryTable.text(of: session) } catch { return done(.failure(error)) }
        change({ database, _ in try RegistryTable.setSession(text, for: device, database) }, done)
    }

    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        try await readers.read { try RegistryTable.feedback(for: app, limit: limit, $0) }
    }

    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        var rest = records[...]
        while !rest.isEmpty {
            let slice = rest.prefix(configuration.upkeepSlice)
            rest = rest.dropFirst(slice.count)
            try await change { database, _ in try RegistryTable.clearFeedback(Array(slice), database) }
        }
    }
}
