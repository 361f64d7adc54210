package import HeraldModel
import Synchronization

/// Who is registered: the numbers of devices and apps, and the changes that devices make to their registrations.
///
/// Registrations themselves live on the post office's desks, where they decide about each notification; here is the way
/// to change them: first in the store, then, once that is durable, on the desk.
package final class Registry: Sendable {
    /// A device that has just been let in.
    package struct Arrival: Sendable {
        package let number: DeviceNumber
        package let record: DeviceRecord
        /// Tells this connection from every earlier one of the device.
        package let fence: UInt64

        package init(number: DeviceNumber, record: DeviceRecord, fence: UInt64) {
            self.number = number
            self.record = record
            self.fence = fence
        }
    }

    private struct Numbers {
        var devices: [DeviceID: DeviceNumber] = [:]
        var deviceNames: [DeviceNumber: DeviceID] = [:]
        var apps: [App: AppNumber] = [:]
        var appNames: [AppNumber: App] = [:]
        /// How many registrations each device has, and had; none where there are none.
        var counts: [DeviceNumber: Counts] = [:]
        /// Apps whose number the store is making, and for how many that ask.
        var expected: [App: Int] = [:]

        /// Counts an app that is to get a number.
        /// - Returns: Whether so many apps may be known.
        mutating func expect(_ app: App, limit: Int) -> Bool {
            guard expected[app] != nil || apps.count + expected.count < limit else { return false }
            expected[app, default: 0] += 1
            return true
        }

        mutating func stopExpecting(_ app: App) {
            guard let others = expected[app].map({ $0 - 1 }) else { return }
            expected[app] = others > 0 ? others : nil
        }
    }

    private struct Counts {
        var live: Int32 = 0
        var ended: Int32 = 0
    }

    private let configuration: RegistryConfiguration
    private let store: any RegistryStore
    private let postOffice: PostOffice
    private let directory: any ConnectionDirectory
    private let clock: any WallClock
    private let numbers = Mutex(Numbers())

    package init(
        configuration: RegistryConfiguration = RegistryConfiguration(),
        store: any RegistryStore,
        postOffice: PostOffice,
        directory: any ConnectionDirectory,
        clock: any WallClock
    ) {
        self.configuration = configuration
        self.store = store
        self.postOffice = postOffice
        self.directory = directory
        self.clock = clock
    }

    /// Takes over all that the store knows; once, before any door opens.
    /// - Throws: If the store cannot be read.
    package func load() async throws {
        let snapshot = try await store.loadRegistry()
        // With a million devices each of these tables takes some tenths of a second: made side by side.
        async let devices = Registry.numbers(of: snapshot.devices)
        async let deviceNames = Registry.names(of: snapshot.devices)
        async let counts = Registry.counts(snapshot.registrations, devices: snapshot.devices.count)
        postOffice.setRegistrations(snapshot.registrations)
        let tables = await (devices: devices, names: deviceNames, counts: counts)
        numbers.withLock { numbers in
            numbers.devices = tables.devices
            numbers.deviceNames = tables.names
            numbers.counts = tables.counts
            for (app, number) in snapshot.apps {
                numbers.apps[app] = number
                numbers.appNames[number] = app
            }
        }
        for (app, number) in snapshot.apps { postOffice.know(app, as: number) }
    }

    private static func numbers(of devices: [(DeviceID, DeviceNumber)]) -> [DeviceID: DeviceNumber] {
        var numbers: [DeviceID: DeviceNumber] = [:]
        numbers.reserveCapacity(devices.count)
        for (id, number) in devices { numbers[id] = number }
        return numbers
    }

    private static func names(of devices: [(DeviceID, DeviceNumber)]) -> [DeviceNumber: DeviceID] {
        var names: [DeviceNumber: DeviceID] = [:]
        names.reserveCapacity(devices.count)
        for (id, number) in devices { names[number] = id }
        return names
    }

    private static func counts(_ registrations: [Registration], devices: Int) -> [DeviceNumber: Counts] {
        var counts: [DeviceNumber: Counts] = [:]
        counts.reserveCapacity(devices)
        for registration in registrations {
            if registration.isLive {
                counts[registration.slot.device, default: Counts()].live += 1
            } else {
                counts[registration.slot.device, default: Counts()].ended += 1
            }
        }
        return counts
    }

    /// The app of a number that the service handed out.
    package func app(_ number: AppNumber) -> App? {
        numbers.withLock { $0.appNames[number] }
    }

    /// The number of an app, if any device ever registered it.
    package func number(of app: App) -> AppNumber? {
        numbers.withLock { $0.apps[app] }
    }

    /// The device of a number that the service handed out.
    package func device(_ number: DeviceNumber) -> DeviceID? {
        numbers.withLock { $0.deviceNames[number] }
    }

    /// The number of a device, if it was ever connected.
    package func number(of device: DeviceID) -> DeviceNumber? {
        numbers.withLock { $0.devices[device] }
    }

    /// Lets a device in whose certificate has been checked.
    /// - Throws: If the store or the directory fails; the device is refused, and tries again.
    package func arrive(_ id: DeviceID) async throws -> Arrival {
        let number: DeviceNumber
        if let known = self.number(of: id) {
            number = known
        } else {
            number = try await store.number(of: id)
            numbers.withLock { numbers in
                numbers.devices[id] = number
                numbers.deviceNames[number] = id
            }
        }
        return try await withCheckedThrowingContinuation { continuation in
            arrive(number) { continuation.resume(with: $0) }
        }
    }

    /// The same for those who cannot wait, and for devices whose number is known; the others are refused.
    ///
    /// `done` is called once, from any thread, and returns at once.
    package func arriveAgain(_ id: DeviceID, _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void) {
        guard let number = self.number(of: id) else { return done(.failure(UnknownDevice())) }
        arrive(number, done)
    }

    private struct UnknownDevice: Error {}

    private func arrive(
        _ number: DeviceNumber,
        _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void
    ) {
        directory.claim(number) { [store] claim in
            switch claim {
            case .failure(let error):
                done(.failure(error))
            case .success(let fence):
                store.readDeviceRecord(number) { record in
                    done(record.map { Arrival(number: number, record: $0, fence: fence) })
                }
            }
        }
    }

    /// Registers apps on a device, or confirms that they are registered.
    ///
    /// Side by side, so that the store can make them durable together. Of one device one call at a time, as everything
    /// that changes its registrations.
    /// - Returns: For each app its registration; or ``RegistrationRefusal``, or why the store failed: that app is not
    ///   registered then.
    package func register(_ apps: [App], on device: DeviceNumber) async -> [App: Result<Registration, any Error>] {
        var results: [App: Result<Registration, any Error>] = [:]
        var rest: [App] = []
        for app in apps {
            if let known = registration(of: app, on: device), known.isLive {
                results[app] = .success(known)
            } else if !rest.contains(app) {
                rest.append(app)
            }
        }
        while !rest.isEmpty {
            let live = numbers.withLock { $0.counts[device]?.live ?? 0 }
            let room = configuration.appsPerDevice - Int(live)
            guard room > 0 else { break }
            let made = await together(rest.prefix(room)) { try await self.registerOne($0, on: device) }
            results.merge(made) { $1 }
            // Those that failed left their room to the next.
            rest.removeFirst(min(room, rest.count))
        }
        for app in rest { results[app] = .failure(RegistrationRefusal.tooManyAppsOnDevice) }
        return results
    }

    private func registerOne(_ app: App, on device: DeviceNumber) async throws -> Registration {
        let wasKnown = registration(of: app, on: device) != nil
        let number = try await makeNumber(of: app)
        let registration = try await store.register(Slot(device: device, app: number), at: clock.now())
        postOffice.setRegistration(registration)
        numbers.withLock { numbers in
            numbers.counts[device, default: Counts()].live += 1
            if wasKnown { numbers.counts[device]?.ended -= 1 }
        }
        return registration
    }

    private func registration(of app: App, on device: DeviceNumber) -> Registration? {
        number(of: app).flatMap { postOffice.registration(Slot(device: device, app: $0)) }
    }

    /// The number of an app; makes one for an app never seen before.
    /// - Throws: ``RegistrationRefusal``, or if the store fails.
    package func makeNumber(of app: App) async throws -> AppNumber {
        if let known = number(of: app) { return known }
        guard numbers.withLock({ $0.expect(app, limit: configuration.apps) }) else {
            throw RegistrationRefusal.tooManyApps
        }
        defer { numbers.withLock { $0.stopExpecting(app) } }
        let number = try await store.number(of: app)
        numbers.withLock { numbers in
            numbers.apps[app] = number
            numbers.appNames[number] = app
        }
        postOffice.know(app, as: number)
        return number
    }

    /// Removes apps from devices: their tokens are dead from now on.
    ///
    /// Side by side, as they are registered.
    /// - Returns: For each slot whether a registration stood; or why the store failed: the registration stands then.
    package func unregister(_ slots: Set<Slot>) async -> [Slot: Result<Bool, any Error>] {
        let results = await together(slots) { try await self.unregisterOne($0) }
        // Not before all are over: what is forgotten in the store must be known as ended here.
        for device in Set(slots.map(\.device)) {
            let ended = numbers.withLock { $0.counts[device]?.ended ?? 0 }
            if ended > configuration.endedAppsPerDevice { await forgetEnded(device) }
        }
        return results
    }

    private func unregisterOne(_ slot: Slot) async throws -> Bool {
        guard let registration = postOffice.registration(slot), registration.isLive else { return false }
        let now = clock.now()
        try await store.unregister(slot, at: now)
        postOffice.endRegistration(slot, at: now)
        numbers.withLock { numbers in
            numbers.counts[slot.device]?.live -= 1
            numbers.counts[slot.device]?.ended += 1
        }
        return true
    }

    /// Forgets the longest ended registrations of a device; what fails now is done with the next one that ends.
    private func forgetEnded(_ device: DeviceNumber) async {
        guard let forgotten = try? await store.forgetEnded(device, keeping: configuration.endedAppsPerDevice) else {
            return
        }
        for slot in forgotten { postOffice.forgetRegistration(slot) }
        numbers.withLock { $0.counts[device]?.ended -= Int32(forgotten.count) }
    }

    /// Keeps whether the user wants an app's notifications; what waits when they are switched off is discarded.
    /// - Throws: If the store fails; nothing changes then.
    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        guard var registration = postOffice.registration(slot) else { return }
        try await store.setEnabled(enabled, for: slot)
        registration.isEnabled = enabled
        postOffice.setRegistration(registration)
    }

    /// Keeps whether the device saves power.
    /// - Throws: If the store fails.
    package func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws {
        try await store.setSavingPower(saving, for: device)
    }

    /// Keeps a device's session, or drops it with nil.
    ///
    /// `done` is called once, from any thread, and returns at once: when the change is durable, or if the store fails.
    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        store.setSession(session, for: device, done)
    }

    // For the feedback service.

    /// Tokens of an app that died and were not registered again, oldest first.
    /// - Throws: If the store cannot be read.
    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        try await store.feedback(for: app, limit: limit)
    }

    /// Forgets exactly these, since their provider has them.
    /// - Throws: If the store fails; they are reported again then.
    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        try await store.clearFeedback(records)
    }

    /// Whether an app has been registered again since its token died.
    package func isBack(_ record: FeedbackRecord) -> Bool {
        postOffice.registration(record.slot)?.isLive ?? false
    }
}
