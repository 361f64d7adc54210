package import HeraldMailbox
package import HeraldModel
import Synchronization

/// Sessions of devices, and whether they save power.
///
/// A device's record has the fence of the connection that owns its session. A connection that begins stamps its fence into
/// the record that it read, before CONNACK, and into that of the registrations. The write fails if the record has changed, so
/// that the session that the device resumes is the newest, whichever replica answered. The write of an older connection finds a
/// greater fence, and is refused.
extension ClusterRegistry {
    /// Reads the session of a device, and whether it saves power, for a connection that begins.
    ///
    /// The record may be older than one that another node wrote: ``beginSession(_:replacing:of:fence:_:)`` notices that.
    package func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        perform(
            on: device,
            otherwise: DeviceRecord(),
            { [self] known, done in
                read(known) { result in
                    done(
                        Result {
                            let read = try result.get()
                            guard let entry = read.record else { return DeviceRecord() }
                            guard entry.fence <= fence else { throw NewerConnection() }
                            return entry.record(at: read.sequence)
                        }
                    )
                }
            },
            done
        )
    }

    /// Takes a session and the registrations over: stores the session with the fence of its connection, if the record is still
    /// the one that was read.
    package func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    ) {
        // Both at once: the device waits.
        let both = GatheredResults<SessionBeginning>(2) { result in
            done(result.map { $0.first ?? .stored })
        }
        stamp(device, fence: fence) { both.add($0.map { [] }) }
        perform(
            on: device,
            otherwise: .stored,
            { [self] known, done in
                var former = read
                former.sequence = nil
                let entry = DeviceLogRecord(id: known.id, number: device, record: former)
                let versioned = Versioned(entry, sequence: read.sequence ?? known.sequence)
                change(known, from: versioned) { [former] entry in
                    guard entry.fence <= fence else { throw NewerConnection() }
                    // With this fence, it is the present write, whose answer was lost.
                    guard entry.record == former || entry.fence == fence else { return false }
                    entry.fence = fence
                    entry.record.session = session
                    return true
                } _: { result in
                    done(
                        result.map { changed, isStored in
                            guard isStored == false, let entry = changed.record else { return .stored }
                            return .changed(entry.record(at: changed.sequence))
                        }
                    )
                }
            },
            { both.add($0.map { [$0] }) }
        )
    }

    /// Stores a session, or removes it with nil; nothing happens if the device is unknown.
    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        perform(
            on: device,
            otherwise: (),
            { [self] known, done in
                let record = DeviceRecord(isSavingPower: known.isSavingPower)
                let entry = DeviceLogRecord(id: known.id, number: device, fence: known.fence, record: record)
                let versioned = Versioned(entry, sequence: known.sequence)
                change(known, from: versioned, isWhole: false) { entry in
                    guard entry.fence <= fence else { throw NewerConnection() }
                    entry.fence = fence
                    entry.record.session = session
                } _: { result in
                    done(result.map { _ in })
                }
            },
            done
        )
    }

    /// Stores whether the device saves power; nothing happens if the device is unknown.
    package func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        try await withCheckedThrowingContinuation { continuation in
            perform(
                on: device,
                otherwise: (),
                { [self] known, done in
                    // The session is not in memory.
                    read(known) { [self] result in
                        switch result {
                        case .failure(let error): done(.failure(error))
                        case .success(let record):
                            change(known, from: record) { entry in
                                guard entry.fence <= fence else { throw NewerConnection() }
                                entry.record.isSavingPower = saving
                            } _: { result in
                                done(result.map { _ in })
                            }
                        }
                    }
                }
            ) { continuation.resume(with: $0) }
        }
    }

    /// Runs an operation on a known device, when those before it have finished.
    private func perform<Value: Sendable>(
        on device: DeviceNumber,
        otherwise: Value,
        _ operation: @escaping @Sendable (KnownDevice, @escaping Done<Value>) -> Void,
        _ done: @escaping Done<Value>
    ) {
        let done = bounded(done)
        operations.run(.device(device)) { [self] finish in
            let deliver: Done<Value> = { result in
                finish()
                done(result)
            }
            guard let known = contents.withLock({ $0.devices[device] }) else { return deliver(.success(otherwise)) }
            operation(known, deliver)
        }
    }

    /// Reads a device's record as this node knows it, or newer, from any replica.
    private func read(_ device: KnownDevice, _ done: @escaping Done<Versioned<DeviceLogRecord>>) {
        let (stream, subject) = record(of: device.id)
        context.changes.look(subject, in: stream, atLeast: device.sequence, done)
    }

    private func change<Value: Sendable>(
        _ device: KnownDevice,
        from known: Versioned<DeviceLogRecord>,
        isWhole: Bool = true,
        _ edit: @escaping @Sendable (inout DeviceLogRecord) throws -> Value,
        _ done: @escaping Done<(Versioned<DeviceLogRecord>, Value?)>
    ) {
        let (stream, subject) = record(of: device.id)
        context.changes.change(subject, in: stream, from: known, isWhole: isWhole) { entry in
            guard var edited = entry else { return nil }
            let value = try edit(&edited)
            entry = edited
            return value
        } _: { [self] (result: Result<(Versioned<DeviceLogRecord>, Value?), any Error>) in
            if let changed = try? result.get().0, let entry = changed.record {
                take { $0.set(entry, sequence: changed.sequence) }
            }
            reports.afterwards { done(result) }
        }
    }
}

extension DeviceLogRecord {
    /// The record, with its place in the log.
    fileprivate func record(at sequence: UInt64) -> DeviceRecord {
        var record = record
        record.sequence = sequence
        return record
    }
}
