package import HeraldMailbox
package import HeraldModel
import Synchronization

/// Sessions of devices, and whether they save power.
extension ClusterRegistry {
    /// Reads the session of a device, and whether it saves power: as of this call, whoever wrote it.
    package func readDeviceRecord(
        _ device: DeviceNumber,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        perform(
            on: device,
            otherwise: DeviceRecord(),
            { [self] known, done in
                read(known) { result in done(result.map { $0.record?.record ?? DeviceRecord() }) }
            },
            done
        )
    }

    /// Stores whether the device saves power; nothing happens if the device is unknown.
    package func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws {
        try await withCheckedThrowingContinuation { continuation in
            perform(
                on: device,
                otherwise: (),
                { [self] known, done in
                    // The session is not in memory.
                    read(known) { [self] result in
                        switch result {
                        case .failure(let error): done(.failure(error))
                        case .success(let record): change(known, from: record, { $0.isSavingPower = saving }, done)
                        }
                    }
                }
            ) { continuation.resume(with: $0) }
        }
    }

    /// Stores a session, or removes it with nil; nothing happens if the device is unknown.
    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        perform(
            on: device,
            otherwise: (),
            { [self] known, done in
                let record = DeviceRecord(isSavingPower: known.isSavingPower)
                let entry = DeviceEntry(id: known.id, number: device, record: record)
                let versioned = Versioned(entry, sequence: known.sequence)
                change(known, from: versioned, isWhole: false, { $0.session = session }, done)
            },
            done
        )
    }

    /// Runs an operation on a known device, when those before it have finished.
    private func perform<Value: Sendable>(
        on device: DeviceNumber,
        otherwise: Value,
        _ operation: @escaping @Sendable (KnownDevice, @escaping Done<Value>) -> Void,
        _ done: @escaping Done<Value>
    ) {
        operations.run(.device(device)) { [self] finish in
            let deliver: Done<Value> = { result in
                finish()
                done(result)
            }
            guard let known = contents.withLock({ $0.devices[device] }) else { return deliver(.success(otherwise)) }
            operation(known, deliver)
        }
    }

    private func read(_ device: KnownDevice, _ done: @escaping Done<Versioned<DeviceEntry>>) {
        let (stream, subject) = record(of: device.id)
        changes.read(subject, in: stream) { (result: Result<Versioned<DeviceEntry>, any Error>) in done(result) }
    }

    private func change(
        _ device: KnownDevice,
        from known: Versioned<DeviceEntry>,
        isWhole: Bool = true,
        _ edit: @escaping @Sendable (inout DeviceRecord) -> Void,
        _ done: @escaping Done<Void>
    ) {
        let (stream, subject) = record(of: device.id)
        changes.change(subject, in: stream, from: known, isWhole: isWhole) { entry in
            guard var edited = entry else { return }
            edit(&edited.record)
            entry = edited
        } _: { [self] result in
            if let changed = try? result.get().0, let entry = changed.record {
                take { $0.set(entry, sequence: changed.sequence) }
            }
            reports.afterwards { done(result.map { _ in }) }
        }
    }
}
