package import HeraldMailbox
package import HeraldModel
import Synchronization

/// Registrations, and the feedback list.
///
/// The record of a device's registrations has the fence of its newest connection, as that of its session. A connection stamps
/// it when it begins, before CONNACK, and names its fence with each change. So what an older connection has asked for does not
/// happen behind the back of the newer one, whichever node it asked.
extension ClusterRegistry {
    /// Makes the registration live and takes it off the feedback list.
    package func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration {
        try await change(registrationsOf: slot.device) { registrations in
            try registrations.take(by: fence)
            guard let registration = registrations.register(slot.app, at: moment) else {
                throw NoGenerationLeft(slot: slot)
            }
            return registration
        }
    }

    /// Ends the registration; nothing happens if it was not live.
    /// - Returns: The registration; nil if there is none.
    package func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration? {
        try await change(registrationsOf: slot.device) { registrations in
            try registrations.take(by: fence)
            registrations.unregister(slot.app, at: moment)
            return registrations.registration(of: slot.app)
        }
    }

    /// Forgets all but the latest `limit` ended registrations of a device, with their feedback records.
    package func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] {
        // Chosen once: repeated, the same ones are forgotten.
        let apps = contents.withLock { $0.registrations[device]?.record?.endedApps(beyond: limit) ?? [] }
        try await change(registrationsOf: device) { $0.forget(apps) }
        return apps.map { Slot(device: device, app: $0) }
    }

    /// Stores whether the user wants the app's notifications.
    package func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        try await change(registrationsOf: slot.device) { registrations in
            try registrations.take(by: fence)
            registrations.setEnabled(enabled, slot.app)
        }
    }

    /// The registration of a slot, as this node knows it.
    func registration(_ slot: Slot) -> Registration? {
        contents.withLock { $0.registrations[slot.device]?.record?.registration(of: slot.app) }
    }

    /// Stamps the registrations of a device, if it has some, with the fence of a connection that begins.
    func stamp(_ device: DeviceNumber, fence: UInt64, _ done: @escaping Done<Void>) {
        change(registrationsOf: device, { try $0.take(by: fence) }, done)
    }

    // MARK: - Feedback

    // Not of a connection: a record names its generation.

    package func addFeedback(_ record: FeedbackRecord, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        change(registrationsOf: record.slot.device, { $0.addFeedback(record) }, done)
    }

    /// The listed tokens of an app, oldest first, with every token that was added before the call.
    package func feedback(for app: AppNumber, limit: Int) async -> [FeedbackRecord] {
        await operations.drain()
        let records = contents.withLock { contents in contents.feedback[app].map { Array($0.values) } ?? [] }
        let ordered = records.sorted { left, right in
            (left.time.milliseconds, left.slot.device.value) < (right.time.milliseconds, right.slot.device.value)
        }
        return Array(ordered.prefix(max(0, limit)))
    }

    /// Removes exactly these records.
    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        for (device, records) in Dictionary(grouping: records, by: \.slot.device) {
            try await change(registrationsOf: device) { registrations in
                for record in records { registrations.clearFeedback(record) }
            }
        }
    }

    // MARK: - Changes

    func change<Value: Sendable>(
        registrationsOf device: DeviceNumber,
        _ edit: @escaping @Sendable (inout DeviceRegistrations) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            change(registrationsOf: device, edit) { continuation.resume(with: $0) }
        }
    }

    private func change<Value: Sendable>(
        registrationsOf device: DeviceNumber,
        _ edit: @escaping @Sendable (inout DeviceRegistrations) throws -> Value,
        _ done: @escaping Done<Value>
    ) {
        let partition = context.partitions.partition(of: device)
        let done = bounded(done)
        operations.run(.registrations(device)) { [self] finish in
            let known = contents.withLock { $0.registrations[device] } ?? Versioned()
            context.changes.change(.registrations(device, partition), in: .registrations(partition), from: known) {
                record in
                var registrations = record ?? DeviceRegistrations(device)
                let value = try edit(&registrations)
                // A device without registrations needs no record.
                record = record == nil && registrations.isEmpty ? nil : registrations
                return value
            } _: { [self] result in
                if let changed = try? result.get().0 { take { $0.set(changed, of: device) } }
                reports.afterwards {
                    finish()
                    done(result.map(\.1))
                }
            }
        }
    }

    /// The error for a registration that was made and ended 2³² times.
    struct NoGenerationLeft: Error, CustomStringConvertible {
        let slot: Slot

        var description: String {
            "app #\(slot.app.value) was removed from device #\(slot.device.value) too often: give the device a new identifier"
        }
    }
}
