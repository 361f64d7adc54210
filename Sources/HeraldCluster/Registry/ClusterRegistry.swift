package import HeraldMailbox
import HeraldModel
package import Logging
import Synchronization

/// The registry of a cluster: devices, apps, registrations and sessions, as records of the log.
///
/// All but the sessions are in memory too. A change of a record is a compare-and-set on what this node knows of it; what
/// another node changed meanwhile is read, and the change is made on that.
package final class ClusterRegistry: Sendable {
    /// A device, without its session.
    struct KnownDevice: Sendable {
        let id: DeviceID
        var isSavingPower: Bool
        /// The fence of the connection that owns its session.
        var fence: UInt64
        /// The sequence of its record.
        var sequence: UInt64
    }

    struct Contents: Sendable {
        var numbers: [DeviceID: DeviceNumber] = [:]
        var devices: [DeviceNumber: KnownDevice] = [:]
        var appNumbers: [App: AppNumber] = [:]
        var apps: [AppNumber: Versioned<AppRecord>] = [:]
        var registrations: [DeviceNumber: Versioned<DeviceRegistrations>] = [:]
        /// The feedback list by app.
        var feedback: [AppNumber: [Slot: FeedbackRecord]] = [:]
    }

    /// A record that changes one after another.
    enum Key: Hashable, Sendable {
        case name(DeviceID)
        case device(DeviceNumber)
        case registrations(DeviceNumber)
        case app(App)
    }

    let partitions: Partitions
    let numbers: ClusterNumbers
    let changes: RecordChanges
    let logger: Logger
    let operations = KeyedOperations<Key>()
    let contents = Mutex(Contents())

    package init(partitions: Partitions, numbers: ClusterNumbers, changes: RecordChanges, logger: Logger) {
        self.partitions = partitions
        self.numbers = numbers
        self.changes = changes
        self.logger = logger
    }

    // MARK: - Loading

    /// Loads everything; once, before any other call.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    package func load(from snapshot: LogSnapshot) async throws {
        try await withThrowingTaskGroup { group in
            for partition in partitions.all {
                group.addTask { try await self.loadDevices(partition, snapshot) }
                group.addTask { try await self.loadRegistrations(partition, snapshot) }
            }
            group.addTask { try await self.loadApps(snapshot) }
            try await group.waitForAll()
        }
    }

    private func loadDevices(_ partition: Partition, _ snapshot: LogSnapshot) async throws {
        try await snapshot.records(of: .devices(partition), as: DeviceEntry.self, logger) { device, sequence in
            self.contents.withLock { $0.set(device, sequence: sequence) }
        }
    }

    private func loadRegistrations(_ partition: Partition, _ snapshot: LogSnapshot) async throws {
        let stream = LogStream.registrations(partition)
        try await snapshot.records(of: stream, as: DeviceRegistrations.self, logger) { registrations, sequence in
            let versioned = Versioned(registrations, sequence: sequence)
            self.contents.withLock { $0.set(versioned, of: registrations.device) }
        }
    }

    private func loadApps(_ snapshot: LogSnapshot) async throws {
        try await snapshot.records(of: .apps, as: AppRecord.self, logger) { record, sequence in
            self.contents.withLock { $0.set(Versioned(record, sequence: sequence), record.app) }
        }
    }

    /// All devices, apps and registrations.
    package func snapshot() -> RegistrySnapshot {
        contents.withLock { contents in
            RegistrySnapshot(
                devices: contents.numbers.map { ($0, $1) },
                apps: contents.apps.values.compactMap(\.record),
                registrations: contents.registrations.values.flatMap { $0.record?.registrations ?? [] }
            )
        }
    }
}

extension ClusterRegistry.Contents {
    /// Sets what the log has of a device.
    mutating func set(_ device: DeviceEntry, sequence: UInt64) {
        numbers[device.id] = device.number
        devices[device.number] = ClusterRegistry.KnownDevice(
            id: device.id,
            isSavingPower: device.record.isSavingPower,
            fence: device.fence,
            sequence: sequence
        )
    }

    /// Sets what the log has of an app; without a record, the app is forgotten.
    mutating func set(_ record: Versioned<AppRecord>, _ app: App) {
        if let former = appNumbers.removeValue(forKey: app) { apps[former] = nil }
        guard let number = record.record?.number else { return }
        appNumbers[app] = number
        apps[number] = record
    }

    /// Sets what the log has of a device's registrations.
    mutating func set(_ registrations: Versioned<DeviceRegistrations>, of device: DeviceNumber) {
        for former in self.registrations[device]?.record?.feedback ?? [] {
            feedback[former.slot.app]?[former.slot] = nil
            if feedback[former.slot.app]?.isEmpty == true { feedback[former.slot.app] = nil }
        }
        self.registrations[device] = registrations
        for record in registrations.record?.feedback ?? [] {
            feedback[record.slot.app, default: [:]][record.slot] = record
        }
    }
}
