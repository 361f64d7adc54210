package import HeraldModel
import Synchronization

/// Registrations of apps on devices.
extension Registry {
    /// Registers apps on a device, or confirms their registrations.
    ///
    /// Concurrently, so that the store can make them durable together. Changes of one device must not overlap. `fence`
    /// is that of the connection that asks.
    /// - Returns: Each app's registration, ``RegistrationRefusal``, ``NewerConnection``, or the store's error.
    package func register(
        _ apps: [App],
        on device: DeviceNumber,
        fence: UInt64
    ) async -> [App: Result<Registration, any Error>] {
        var results: [App: Result<Registration, any Error>] = [:]
        var known: [App] = []
        var rest: [App] = []
        var seen: Set<App> = []
        for app in apps where seen.insert(app).inserted {
            guard let registration = registration(of: app, on: device), registration.isLive else {
                rest.append(app)
                continue
            }
            results[app] = .success(registration)
            known.append(app)
        }
        if store.shared != nil {
            // Another node may have ended them: the store confirms them under the fence.
            results = await mapConcurrently(known) { try await self.registerOne($0, on: device, fence) }
        }
        var hasCaughtUp = false
        while !rest.isEmpty {
            let live = numbers.withLock { $0.counts[device]?.live ?? 0 }
            let room = configuration.appsPerDevice - Int(live)
            guard room > 0 else {
                guard let shared = store.shared, !hasCaughtUp else { break }
                // Another node may have ended some.
                hasCaughtUp = true
                do { try await shared.catchUp(.registrations(of: device)) } catch {
                    for app in rest { results[app] = .failure(error) }
                    return results
                }
                continue
            }
            let made = await mapConcurrently(rest.prefix(room)) { try await self.registerOne($0, on: device, fence) }
            results.merge(made) { $1 }
            // Failed registrations leave their room to the next apps.
            rest.removeFirst(min(room, rest.count))
        }
        for app in rest { results[app] = .failure(RegistrationRefusal.tooManyAppsOnDevice) }
        return results
    }

    private func registerOne(_ app: App, on device: DeviceNumber, _ fence: UInt64) async throws -> Registration {
        try await withNumber(of: app, for: .device(device)) { number in
            let slot = Slot(device: device, app: number)
            let registration = try await store.register(slot, at: clock.now(), fence: fence)
            changed(.registration(registration))
            return registration
        }
    }

    private func registration(of app: App, on device: DeviceNumber) -> Registration? {
        number(of: app).flatMap { postOffice.registration(Slot(device: device, app: $0)) }
    }

    // MARK: - Removal

    /// Removes apps from a device: their tokens are no longer valid; `fence` is that of the connection that asks.
    ///
    /// - Returns: For each slot whether it had a live registration; or ``NewerConnection`` or the store's error, and the
    ///   registration stays.
    package func unregister(_ slots: Set<Slot>, fence: UInt64) async -> [Slot: Result<Bool, any Error>] {
        let results = await mapConcurrently(slots) { try await self.unregisterOne($0, fence) }
        // After all of them: a registration that the store forgets must have ended here.
        for device in Set(slots.map(\.device)) {
            let ended = numbers.withLock { $0.counts[device]?.ended ?? 0 }
            if ended > configuration.endedAppsPerDevice { await forgetEnded(device) }
        }
        return results
    }

    private func unregisterOne(_ slot: Slot, _ fence: UInt64) async throws -> Bool {
        guard var registration = try await liveRegistration(slot) else { return false }
        let now = clock.now()
        try await store.unregister(slot, at: now, fence: fence)
        (registration.isLive, registration.ended) = (false, now)
        changed(.registration(registration))
        return true
    }

    /// The registration of a slot if it is live, also if another node has just made it.
    private func liveRegistration(_ slot: Slot) async throws -> Registration? {
        if let known = postOffice.registration(slot), known.isLive { return known }
        guard let shared = store.shared else { return nil }
        try await shared.catchUp(.registrations(of: slot.device))
        return postOffice.registration(slot).flatMap { $0.isLive ? $0 : nil }
    }

    /// Forgets the oldest ended registrations of a device; a failure is made up for when the next one ends.
    private func forgetEnded(_ device: DeviceNumber) async {
        guard let forgotten = try? await store.forgetEnded(device, keeping: configuration.endedAppsPerDevice) else {
            return
        }
        for slot in forgotten { changed(.registrationForgotten(slot)) }
    }

    /// Stores whether the user wants an app's notifications; if not, the stored one is discarded.
    /// - Throws: ``NewerConnection``, or if the store fails; nothing changes then.
    package func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        guard var registration = postOffice.registration(slot) else { return }
        try await store.setEnabled(enabled, for: slot, fence: fence)
        registration.isEnabled = enabled
        changed(.registration(registration))
    }
}
