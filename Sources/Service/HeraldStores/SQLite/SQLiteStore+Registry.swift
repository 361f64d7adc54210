import GRDB
package import HeraldMailbox
package import HeraldModel

extension SQLiteStore: RegistryStore {
    package func loadRegistry() async throws -> RegistrySnapshot {
        // The registry does not change before it is loaded, so two transactions see the same.
        async let devices = readers.read { [damage] in try RegistryTable.loadDevices($0, damage) }
        async let registrations = readers.read { [damage] in try RegistryTable.loadRegistrations($0, damage) }
        let apps = try await readers.read { [damage] in try AppTable.load($0, damage) }
        return try await RegistrySnapshot(devices: devices, apps: apps, registrations: registrations)
    }

    package func number(of device: DeviceID) async throws -> DeviceNumber {
        try await change { database, _ in try RegistryTable.number(of: device, database) }
    }

    package func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber {
        try await change { database, _ in try AppTable.number(of: app, for: origin, at: moment, database) }
    }

    package func appUsages(_ app: AppNumber?) async throws -> [AppUsage] {
        try await readers.read { [damage] in try AppTable.usages(app, $0, damage) }
    }

    package func forgetApp(_ app: AppNumber, at moment: WallTime) async throws -> [Slot] {
        let ended = try await readers.read { [damage] in try RegistryTable.ended(of: app, $0, damage) }
        var rest = ended[...]
        while !rest.isEmpty {
            let slice = Array(rest.prefix(configuration.maintenanceSlice))
            rest = rest.dropFirst(slice.count)
            try await change { database, batch in
                try RegistryTable.forget(slice, database)
                for registration in slice {
                    batch.discard(registration.slot, .discardedUnregisteredFromStorage, at: moment)
                }
            }
        }
        try await change { database, _ in try AppTable.delete(app, database) }
        return ended.map(\.slot)
    }

    package func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration {
        try await change { [damage] database, batch in
            let (registration, isAnew) = try RegistryTable.register(slot, at: moment, database, damage)
            // A post to the token before may have been stored after the end of its registration. A slot has no generation.
            if isAnew { batch.discard(slot, .discardedUnregisteredFromStorage, at: moment) }
            return registration
        }
    }

    package func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws {
        try await change { [damage] database, batch in
            guard try RegistryTable.unregister(slot, at: moment, database, damage) else { return }
            batch.discard(slot, .discardedUnregisteredFromStorage, at: moment)
        }
    }

    package func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] {
        try await change { [damage] database, _ in
            try RegistryTable.forgetEnded(device, keeping: limit, database, damage)
        }
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        try await change { database, batch in
            try RegistryTable.setEnabled(enabled, for: slot, database)
            if !enabled { batch.discard(slot, .discardedDisabledFromStorage, at: batch.now) }
        }
    }

    package func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        try await change { database, _ in try RegistryTable.setSavingPower(saving, for: device, database) }
    }

    package func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        readers.submit(isQuick: true, { try RegistryTable.deviceRecord(device, $0) }, done)
    }

    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let text = session?.text
        change({ database, _ in try RegistryTable.setSession(text, for: device, database) }, done)
    }

    package func addFeedback(
        _ record: FeedbackRecord,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        change({ database, _ in try RegistryTable.addFeedback(record, database) }, done)
    }

    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        // An empty change is durable after those before it. A store that cannot write reads what it has.
        try? await change { _, _ in }
        return try await readers.read { [damage] in
            try RegistryTable.feedback(for: app, limit: limit, $0, damage)
        }
    }

    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        var rest = records[...]
        while !rest.isEmpty {
            let slice = rest.prefix(configuration.maintenanceSlice)
            rest = rest.dropFirst(slice.count)
            try await change { database, _ in try RegistryTable.clearFeedback(Array(slice), database) }
        }
    }
}
