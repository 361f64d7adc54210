package import HeraldMailbox
package import HeraldModel
import Synchronization

/// Numbers of devices and apps.
extension ClusterRegistry {
    /// The number of a device; a new one for a new device.
    package func number(of device: DeviceID) async throws -> DeviceNumber {
        if let number = contents.withLock({ $0.numbers[device] }) { return number }
        return try await perform(.name(device)) { [self] done in
            if let number = contents.withLock({ $0.numbers[device] }) { return done(.success(number)) }
            numbers.device(above: highestDevice) { [self] result in
                switch result {
                case .failure(let error): done(.failure(error))
                case .success(let number): create(DeviceLogRecord(id: device, number: number), done)
                }
            }
        }
    }

    private func highestDevice(of incarnation: UInt32) -> UInt64 {
        contents.withLock { contents in
            let own = contents.devices.keys.lazy.map(\.value).filter { $0 >> 32 == UInt64(incarnation) }
            return own.max().map { $0 & UInt64(UInt32.max) } ?? 0
        }
    }

    private func highestApp() -> UInt64 {
        contents.withLock { UInt64($0.appNames.keys.lazy.map(\.value).max() ?? 0) }
    }

    private func create(_ new: DeviceLogRecord, _ done: @escaping Done<DeviceNumber>) {
        let (stream, subject) = record(of: new.id)
        context.changes.change(subject, in: stream, from: Versioned<DeviceLogRecord>()) { record in
            if let record, record.id != new.id { throw SharedKey(first: record.id, second: new.id) }
            // Another node may have made it.
            record = record ?? new
        } _: { [self] result in
            let made = Result {
                let made = try result.get().0
                guard let device = made.record else { throw RecordChangeFailure.contended }
                take { $0.set(device, sequence: made.sequence) }
                return device.number
            }
            reports.afterwards { done(made) }
        }
    }

    /// The stream and subject of a device's record.
    func record(of device: DeviceID) -> (LogStream, LogSubject) {
        let key = DeviceHash(device)
        let partition = context.partitions.partition(of: key)
        return (.devices(partition), .device(key, partition))
    }

    /// The error for two identifiers with the same key, 96 bits of SHA-256.
    struct SharedKey: Error, CustomStringConvertible {
        let first: DeviceID
        let second: DeviceID

        var description: String {
            "the devices \(first.name) and \(second.name) have the same key in the log: give one of them another identifier"
        }
    }

    // MARK: - Apps

    /// The number of an app; a new one for a new app.
    package func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber {
        if let number = contents.withLock({ $0.apps[app]?.record?.number }) { return number }
        return try await perform(.app(app)) { [self] done in
            if let number = contents.withLock({ $0.apps[app]?.record?.number }) { return done(.success(number)) }
            newAppNumber { [self] result in
                switch result {
                case .failure(let error): done(.failure(error))
                case .success(let number):
                    let record = AppRecord(app: app, number: number, origin: origin, created: moment)
                    create(record, done)
                }
            }
        }
    }

    /// A number from the counter that no known app has: imported apps have numbers of their own.
    private func newAppNumber(_ done: @escaping Done<AppNumber>) {
        numbers.app(above: highestApp) { [self] result in
            if case .success(let number) = result, contents.withLock({ $0.appNames[number] != nil }) {
                newAppNumber(done)
            } else {
                done(result)
            }
        }
    }

    private func create(_ new: AppRecord, _ done: @escaping Done<AppNumber>) {
        let known = contents.withLock { $0.apps[new.app] } ?? Versioned()
        context.changes.change(.app(new.app), in: .apps, from: known) { record in
            record = record ?? new
        } _: { [self] result in
            let number = Result {
                let made = try result.get().0
                guard let record = made.record else { throw RecordChangeFailure.contended }
                take { $0.set(made, new.app) }
                return record.number
            }
            reports.afterwards { done(number) }
        }
    }

    /// The use of an app, or of all, by topic and environment; `channels` is the number of channels of each app.
    package func appUsages(_ app: AppNumber?, channels: [AppNumber: Int]) -> [AppUsage] {
        contents.withLock { contents in
            var live: [AppNumber: Int] = [:]
            for registration in contents.registrations.values.lazy.flatMap({ $0.record?.registrations ?? [] })
            where registration.isLive {
                live[registration.slot.app, default: 0] += 1
            }
            let records = contents.apps.values.compactMap(\.record).filter { app == nil || app == $0.number }
            let usages = records.map { record in
                let number = record.number
                return AppUsage(record: record, devices: live[number] ?? 0, channels: channels[number] ?? 0)
            }
            return usages.sorted {
                let (left, right) = ($0.record.app, $1.record.app)
                return (left.topic.name, left.environment.rawValue) < (right.topic.name, right.environment.rawValue)
            }
        }
    }

    /// Forgets an app that no device has registered: its ended registrations, and its name.
    /// - Returns: The ended registrations.
    package func forgetApp(_ app: AppNumber) async throws -> [Registration] {
        let ended = contents.withLock { contents in
            contents.registrations.values.compactMap { $0.record?.registration(of: app) }.filter { !$0.isLive }
        }
        for registration in ended {
            try await change(registrationsOf: registration.slot.device) { $0.forget([app]) }
        }
        guard let name = contents.withLock({ $0.appNames[app] }) else { return ended }
        return try await perform(.app(name)) { [self] done in
            let known = contents.withLock { $0.apps[name] } ?? Versioned()
            context.changes.change(
                .app(name),
                in: .apps,
                from: known,
                timeToLive: ClusterLimits.removedRecordTimeToLive
            ) { record in
                // Under another number it is another app.
                if record?.number == app { record = nil }
            } _: { [self] result in
                if let left = try? result.get().0 { take { $0.set(left, name) } }
                reports.afterwards { done(result.map { _ in ended }) }
            }
        }
    }

    // MARK: - Order

    /// Takes the result of an operation, once.
    typealias Done<Value> = @Sendable (Result<Value, any Error>) -> Void

    /// Runs an operation when those of the same record before it have finished.
    func perform<Value: Sendable>(
        _ key: Key,
        _ operation: @escaping @Sendable (_ done: @escaping Done<Value>) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            let done = bounded { continuation.resume(with: $0) }
            operations.run(key) { finish in
                operation { result in
                    finish()
                    done(result)
                }
            }
        }
    }
}
