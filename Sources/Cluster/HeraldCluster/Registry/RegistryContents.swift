import HeraldMailbox
import HeraldModel

/// A device, without its session.
struct KnownDevice: Sendable {
    let id: DeviceID
    var isSavingPower: Bool
    /// The fence of the connection that owns its session.
    var fence: UInt64
    /// The sequence of its record.
    var sequence: UInt64
}

/// The registry as a node knows it, as of the sequence of each record.
struct RegistryContents: Sendable {
    var numbers: [DeviceID: DeviceNumber] = [:]
    var devices: [DeviceNumber: KnownDevice] = [:]
    /// Devices by the number of their ``DeviceHash``.
    private var keys: [UInt64: DeviceNumber] = [:]
    var appNames: [AppNumber: App] = [:]
    /// Forgotten apps too, with the sequence of their removal.
    var apps: [App: Versioned<AppRecord>] = [:]
    var registrations: [DeviceNumber: Versioned<DeviceRegistrations>] = [:]
    /// The feedback list by app.
    var feedback: [AppNumber: [Slot: FeedbackRecord]] = [:]

    /// The record of a device, without its session, for a subject that was overwritten.
    func device(at subject: LogSubject) -> DeviceLogRecord? {
        guard let key = DeviceHash(subject), let number = keys[key.number], let known = devices[number],
            DeviceHash(known.id) == key
        else { return nil }
        let record = DeviceRecord(isSavingPower: known.isSavingPower)
        return DeviceLogRecord(id: known.id, number: number, fence: known.fence, record: record)
    }

    // Each returns the changes that it makes; none if the record is not newer than the known one.

    mutating func set(_ device: DeviceLogRecord, sequence: UInt64) -> [RegistryChange] {
        let known = devices[device.number]
        guard sequence > known?.sequence ?? 0 else { return [] }
        if known == nil { keys[DeviceHash(device.id).number] = device.number }
        numbers[device.id] = device.number
        devices[device.number] = KnownDevice(
            id: device.id,
            isSavingPower: device.record.isSavingPower,
            fence: device.fence,
            sequence: sequence
        )
        return known == nil ? [.device(device.id, device.number)] : []
    }

    /// Sets what the log has of an app; without a record, the app is forgotten.
    mutating func set(_ record: Versioned<AppRecord>, _ app: App) -> [RegistryChange] {
        guard record.sequence > apps[app]?.sequence ?? 0 else { return [] }
        let former = apps.updateValue(record, forKey: app)?.record
        guard former?.number != record.record?.number else { return [] }
        if let former { appNames[former.number] = nil }
        if let new = record.record { appNames[new.number] = app }
        return [former.map { .appForgotten($0) }, record.record.map { .app($0) }].compactMap(\.self)
    }

    /// Sets what the log has of a device's registrations.
    mutating func set(_ new: Versioned<DeviceRegistrations>, of device: DeviceNumber) -> [RegistryChange] {
        guard new.sequence > registrations[device]?.sequence ?? 0 else { return [] }
        let former = registrations.updateValue(new, forKey: device)?.record
        var changes: [RegistryChange] = []
        let listed = Dictionary(uniqueKeysWithValues: new.record?.feedback.lazy.map { ($0.slot, $0) } ?? [])
        for record in former?.feedback ?? [] where listed[record.slot] != record {
            feedback[record.slot.app]?[record.slot] = nil
            if feedback[record.slot.app]?.isEmpty == true { feedback[record.slot.app] = nil }
            if listed[record.slot] == nil { changes.append(.feedbackCleared(record.slot)) }
        }
        for record in listed.values { feedback[record.slot.app, default: [:]][record.slot] = record }
        for registration in former?.registrations ?? []
        where new.record?.registration(of: registration.slot.app) == nil {
            changes.append(.registrationForgotten(registration.slot))
        }
        for registration in new.record?.registrations ?? []
        where former?.registration(of: registration.slot.app) != registration {
            changes.append(.registration(registration))
        }
        return changes
    }
}
