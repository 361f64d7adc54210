package import HeraldMailbox
package import HeraldModel
import Synchronization

/// The registry's part of the store in memory.
extension MemoryStore {
    package func loadRegistry() async throws -> RegistrySnapshot {
        contents.withLock { contents in
            RegistrySnapshot(
                devices: contents.devices.map { ($0, $1) },
                apps: Array(contents.apps.values),
                registrations: Array(contents.registrations.values)
            )
        }
    }

    package func number(of device: DeviceID) async throws -> DeviceNumber {
        try write { contents in
            if let number = contents.devices[device] { return number }
            let number = DeviceNumber(UInt64(contents.devices.count) + 1)
            contents.devices[device] = number
            return number
        }
    }

    package func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber {
        await meeting.come()
        return try write { contents in
            if let known = contents.apps[app] { return known.number }
            contents.lastApp += 1
            let number = AppNumber(contents.lastApp)
            contents.apps[app] = AppRecord(app: app, number: number, origin: origin, created: moment)
            return number
        }
    }

    package func appUsages(_ app: AppNumber?) async throws -> [AppUsage] {
        contents.withLock { contents in
            let records = contents.apps.values.filter { app == nil || $0.number == app }
            return records.sorted {
                ($0.app.topic.name, $0.app.environment.rawValue) < ($1.app.topic.name, $1.app.environment.rawValue)
            }
            .map { record in
                AppUsage(
                    record: record,
                    devices: contents.registrations.values.count { $0.slot.app == record.number && $0.isLive },
                    channels: contents.channels.count { $0.app == record.number }
                )
            }
        }
    }

    package func forgetApp(_ app: AppNumber, at moment: WallTime) async throws -> [Slot] {
        flushNow()
        return try write { contents in
            let ended = contents.registrations.values.filter { $0.slot.app == app && !$0.isLive }
            forget(ended, &contents)
            for slot in ended.map(\.slot) {
                guard let held = contents.slots.removeValue(forKey: slot) else { continue }
                contents.journal.append(
                    JournalEvent(.discardedUnregisteredFromStorage, held.notification, at: moment)
                )
            }
            contents.apps = contents.apps.filter { $0.value.number != app }
            return ended.map(\.slot)
        }
    }

    private func forget(_ ended: [Registration], _ contents: inout Contents) {
        for registration in ended {
            contents.generationFloor = max(contents.generationFloor, registration.generation + 1)
            contents.registrations[registration.slot] = nil
            contents.feedback.removeAll { $0.slot == registration.slot }
        }
    }

    package func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration {
        await meeting.come()
        return try write { contents in
            var registration =
                contents.registrations[slot]
                ?? Registration(slot: slot, generation: contents.generationFloor, isLive: true, registered: moment)
            if !registration.isLive {
                registration.generation += 1
                registration.isLive = true
                registration.isEnabled = true
                registration.registered = moment
                contents.feedback.removeAll { $0.slot == slot }
                if let held = contents.slots.removeValue(forKey: slot) {
                    contents.journal.append(
                        JournalEvent(.discardedUnregisteredFromStorage, held.notification, at: moment)
                    )
                }
            }
            contents.registrations[slot] = registration
            return registration
        }
    }

    package func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws {
        await meeting.come()
        flushNow()
        try write { contents in
            guard var registration = contents.registrations[slot], registration.isLive else { return }
            registration.isLive = false
            registration.ended = moment
            contents.registrations[slot] = registration
            guard let held = contents.slots.removeValue(forKey: slot) else { return }
            contents.journal.append(
                JournalEvent(.discardedUnregisteredFromStorage, held.notification, at: moment)
            )
        }
    }

    package func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] {
        try write { contents in
            let ended = contents.registrations.values.filter { $0.slot.device == device && !$0.isLive }
            let latest = ended.sorted {
                ($0.ended?.milliseconds ?? 0, $0.slot.app.value) > ($1.ended?.milliseconds ?? 0, $1.slot.app.value)
            }
            let forgotten = Array(latest.dropFirst(limit))
            forget(forgotten, &contents)
            return forgotten.map(\.slot)
        }
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        flushNow()
        let now = clock.now()
        try write { contents in
            guard contents.registrations[slot]?.isLive ?? false else { return }
            contents.registrations[slot]?.isEnabled = enabled
            guard !enabled, let held = contents.slots.removeValue(forKey: slot) else { return }
            contents.journal.append(JournalEvent(.discardedDisabledFromStorage, held.notification, at: now))
        }
    }

    package func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        try write { $0.records[device, default: DeviceRecord()].isSavingPower = saving }
    }

    package func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        done(.success(contents.withLock { $0.records[device] ?? DeviceRecord() }))
    }

    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        done(Result { try write { $0.records[device, default: DeviceRecord()].session = session } })
    }

    package func addFeedback(
        _ record: FeedbackRecord,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        done(
            Result {
                try write { contents in
                    guard contents.registrations[record.slot]?.isLive == false else { return }
                    if let index = contents.feedback.firstIndex(where: { $0.slot == record.slot }) {
                        guard contents.feedback[index].generation < record.generation else { return }
                        contents.feedback.remove(at: index)
                    }
                    contents.feedback.append(record)
                }
            }
        )
    }

    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        contents.withLock { contents in
            Array(contents.feedback.filter { $0.slot.app == app }.sorted { $0.time < $1.time }.prefix(limit))
        }
    }

    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        try write { contents in
            contents.feedback.removeAll { records.contains($0) }
        }
    }
}
