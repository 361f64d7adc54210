import HeraldMailbox
import HeraldModel
import Logging
import Synchronization

/// Records of the log, own and others'.
///
/// A record counts only if its sequence is greater than that of what is known: a node hears of its own writes twice, and a
/// change that it reads may have been followed already.
extension ClusterRegistry {
    /// Applies what the follower of a stream reports.
    func apply(_ entries: [LogEntry], of stream: LogStream) {
        switch stream {
        case .apps:
            for entry in entries {
                if entry.isTombstone {
                    guard let app = entry.subject.app else { continue }
                    take { $0.set(Versioned(sequence: entry.sequence), app) }
                } else if let record = record(of: entry, as: AppRecord.self) {
                    take { $0.set(Versioned(record, sequence: entry.sequence), record.app) }
                }
            }
        case .devices:
            for entry in entries where !entry.isTombstone {
                guard let device = record(of: entry, as: DeviceEntry.self) else { continue }
                take { $0.set(device, sequence: entry.sequence) }
            }
        case .registrations:
            for entry in entries where !entry.isTombstone {
                guard let registrations = record(of: entry, as: DeviceRegistrations.self) else { continue }
                take { $0.set(Versioned(registrations, sequence: entry.sequence), of: registrations.device) }
            }
        case .meta, .mailbox, .channels, .broadcasts, .trust: break
        }
        reports.report()
    }

    /// Takes over what the log has; ``OrderedReports/report()`` or ``OrderedReports/afterwards(_:)`` follows.
    func take(_ body: (inout Contents) -> [RegistryChange]) {
        // In the order of the changes, so under their lock.
        contents.withLock { reports.add(body(&$0)) }
    }

    /// The record of an entry; a damaged one is left out, with a line in the log of the service.
    private func record<Record: LogRecord>(of entry: LogEntry, as _: Record.Type) -> Record? {
        do throws(RecordError) {
            return try Record(entry.payload)
        } catch {
            if case .otherVersion = error { failure.withLock { $0 = error } }
            // As in SQLite: one damaged record does not keep the service from all others.
            logger.error("left out a record of the cluster's log: \(error)", metadata: ["subject": "\(entry.subject)"])
            return nil
        }
    }
}

extension ClusterRegistry.Contents {
    /// Sets what the log has of a device.
    mutating func set(_ device: DeviceEntry, sequence: UInt64) -> [RegistryChange] {
        let known = devices[device.number]
        guard sequence > known?.sequence ?? 0 else { return [] }
        numbers[device.id] = device.number
        devices[device.number] = ClusterRegistry.KnownDevice(
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
