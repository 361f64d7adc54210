package import HeraldModel
package import Logging
import Synchronization

/// Numbers devices and apps, and changes registrations.
///
/// The registrations are in the post office's shards. A change goes to the store first, and to the shard when it is durable.
package final class Registry: Sendable {
    /// A device that has connected.
    package struct Arrival: Sendable {
        package let number: DeviceNumber
        package let record: DeviceRecord
        /// Greater than the fence of every earlier connection of the device.
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
        var apps: AppNames
        /// The number of registrations of each device that has, or had, some.
        var counts: [DeviceNumber: Counts] = [:]
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
    private let logger: Logger
    private let numbers: Mutex<Numbers>

    package init(
        configuration: RegistryConfiguration = RegistryConfiguration(),
        store: any RegistryStore,
        postOffice: PostOffice,
        directory: any ConnectionDirectory,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.store = store
        self.postOffice = postOffice
        self.directory = directory
        self.clock = clock
        self.logger = logger
        numbers = Mutex(Numbers(apps: AppNames(configuration)))
    }

    /// Loads all registrations from the store; once, before any listener opens.
    /// - Throws: If the store cannot be read.
    package func load() async throws {
        let snapshot = try await store.loadRegistry()
        // With a million devices each of these tables takes tenths of a second: made concurrently.
        async let devices = Registry.numbers(of: snapshot.devices)
        async let deviceNames = Registry.names(of: snapshot.devices)
        async let counts = Registry.counts(snapshot.registrations, devices: snapshot.devices.count)
        async let registered = Set(snapshot.registrations.lazy.map(\.slot.app))
        postOffice.setRegistrations(snapshot.registrations)
        let now = clock.now()
        let tables = await (devices: devices, names: deviceNames, counts: counts, registered: registered)
        numbers.withLock { numbers in
            numbers.devices = tables.devices
            numbers.deviceNames = tables.names
            numbers.counts = tables.counts
            numbers.apps.load(snapshot.apps, registered: tables.registered, now: now)
        }
        for record in snapshot.apps { postOffice.setNumber(record.number, of: record.app) }
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

    /// The app of a number.
    package func app(_ number: AppNumber) -> App? {
        numbers.withLock { $0.apps.app(number) }
    }

    /// The number of an app that has one.
    package func number(of app: App) -> AppNumber? {
        numbers.withLock { $0.apps.number(of: app) }
    }

    /// Whether a device has registered an app; after a restart, whether one has it or is remembered to have removed it.
    package func isRegistered(_ app: App) -> Bool {
        numbers.withLock { $0.apps.isRegistered(app) }
    }

    /// The team that brought an app's name by creating its first channel; nil if a device or a certificate did.
    package func team(thatBrought app: App) -> String? {
        numbers.withLock { $0.apps.team(thatBrought: app) }
    }

    /// The device of a number.
    package func device(_ number: DeviceNumber) -> DeviceID? {
        numbers.withLock { $0.deviceNames[number] }
    }

    /// The number of a device that was ever connected.
    package func number(of device: DeviceID) -> DeviceNumber? {
        numbers.withLock { $0.devices[device] }
    }

    /// Admits a device whose certificate is verified.
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

    /// Admits a device without waiting; fails if its number is not known.
    ///
    /// `done` is called once, from any thread, and returns at once.
    package func arriveAgain(_ id: DeviceID, _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void) {
        guard let number = self.number(of: id) else { return done(.failure(UnknownDevice())) }
        arrive(number, done)
    }

    private struct UnknownDevice: Error {}

    private func arrive(_ number: DeviceNumber, _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void) {
        directory.claim(number) { [store, directory] claim in
            switch claim {
            case .failure(let error):
                done(.failure(error))
            case .success(let fence):
                store.readDeviceRecord(number, fence: fence) { record in
                    if case .failure = record { directory.release(number, fence: fence) }
                    done(record.map { Arrival(number: number, record: $0, fence: fence) })
                }
            }
        }
    }

    /// Registers apps on a device, or confirms their registrations.
    ///
    /// Concurrently, so that the store can make them durable together. Changes of one device must not overlap.
    /// - Returns: Each app's registration, ``RegistrationRefusal``, or the store's error.
    package func register(_ apps: [App], on device: DeviceNumber) async -> [App: Result<Registration, any Error>] {
        var results: [App: Result<Registration, any Error>] = [:]
        var rest: [App] = []
        var seen: Set<App> = []
        for app in apps where seen.insert(app).inserted {
            if let known = registration(of: app, on: device), known.isLive {
                results[app] = .success(known)
            } else {
                rest.append(app)
            }
        }
        while !rest.isEmpty {
            let live = numbers.withLock { $0.counts[device]?.live ?? 0 }
            let room = configuration.appsPerDevice - Int(live)
            guard room > 0 else { break }
            let made = await mapConcurrently(rest.prefix(room)) { try await self.registerOne($0, on: device) }
            results.merge(made) { $1 }
            // Failed registrations leave their room to the next apps.
            rest.removeFirst(min(room, rest.count))
        }
        for app in rest { results[app] = .failure(RegistrationRefusal.tooManyAppsOnDevice) }
        return results
    }

    private func registerOne(_ app: App, on device: DeviceNumber) async throws -> Registration {
        try await withNumber(of: app, for: .device(device)) { number in
            let slot = Slot(device: device, app: number)
            let wasKnown = postOffice.registration(slot) != nil
            let registration = try await store.register(slot, at: clock.now())
            postOffice.setRegistration(registration)
            postOffice.feedback.forget([slot])
            numbers.withLock { numbers in
                numbers.apps.noteRegistration(number)
                numbers.counts[device, default: Counts()].live += 1
                if wasKnown { numbers.counts[device]?.ended -= 1 }
            }
            return registration
        }
    }

    private func registration(of app: App, on device: DeviceNumber) -> Registration? {
        number(of: app).flatMap { postOffice.registration(Slot(device: device, app: $0)) }
    }

    /// Calls `body` with the number of an app, a new one for a new app; the app is not forgotten meanwhile.
    /// - Throws: ``RegistrationRefusal`` of a new app, or if the store or `body` fails.
    package func withNumber<Value: Sendable>(
        of app: App,
        for origin: AppOrigin?,
        _ body: (AppNumber) async throws -> Value
    ) async throws -> Value {
        let now = clock.now()
        let pin = numbers.withLock { $0.apps.pin(app, for: origin, now: now) }
        switch pin {
        case .refused(let refusal, let isFirst):
            if isFirst { log(refusal, origin) }
            throw refusal
        case .busy: throw BeingForgotten()
        case .known, .new: break
        }
        defer { numbers.withLock { $0.apps.unpin(app) } }
        if case .known(let number) = pin { return try await body(number) }
        let number = try await store.number(of: app, for: origin, at: now)
        numbers.withLock { $0.apps.made(number, of: app) }
        postOffice.setNumber(number, of: app)
        return try await body(number)
    }

    private struct BeingForgotten: Error, CustomStringConvertible {
        var description: String { "the app is being forgotten at this moment" }
    }

    private func log(_ refusal: RegistrationRefusal, _ origin: AppOrigin?) {
        if refusal == .tooManyNewNames, let origin {
            return logger.notice(
                "new app names are refused: as many as one device or team may bring, in all or within a day",
                metadata: ["by": "\(name(origin))"]
            )
        }
        let (count, largest) = numbers.withLock { ($0.apps.count, $0.apps.largest(5)) }
        let names = largest.map { "\(name($0.origin)): \($0.names)" }.joined(separator: ", ")
        logger.warning(
            "new app names are refused: the service knows as many as it may; forget some with `herald app forget`",
            metadata: ["names": "\(count)", "most": "\(names)"]
        )
    }

    private func name(_ origin: AppOrigin) -> String {
        switch origin {
        case .device(let number): "device \(device(number)?.name ?? "#\(number.value)")"
        case .team(let team): "team \(team)"
        }
    }

    // MARK: - For operators

    /// The use of an app, or of all, by topic and environment.
    /// - Throws: If the store cannot be read.
    package func appUsages() async throws -> [AppUsage] {
        try await store.appUsages(nil)
    }

    /// Forgets an app that no device has registered and that has no channel.
    ///
    /// Its number stays retired.
    /// - Returns: The app's use, with which it is or is not forgotten; nil if there is no such app, or work on it is under way.
    /// - Throws: If the store fails; what is left of the app can be forgotten later.
    package func forget(_ app: App) async throws -> AppUsage? {
        guard let number = numbers.withLock({ $0.apps.beginForgetting(app) }) else { return nil }
        var usage: AppUsage?
        var isForgotten = false
        defer {
            numbers.withLock { $0.apps.endForgetting(app, isForgotten: isForgotten, origin: usage?.record.origin) }
        }
        usage = try await store.appUsages(number).first
        guard let usage, usage.isUnused else { return usage }
        for slot in try await store.forgetApp(number, at: clock.now()) {
            postOffice.forgetRegistration(slot)
            numbers.withLock { $0.counts[slot.device]?.ended -= 1 }
        }
        isForgotten = true
        return usage
    }

    // MARK: - Removal

    /// Removes apps from devices: their tokens are no longer valid.
    ///
    /// - Returns: For each slot whether it had a live registration; or the store's error, and the registration stays.
    package func unregister(_ slots: Set<Slot>) async -> [Slot: Result<Bool, any Error>] {
        let results = await mapConcurrently(slots) { try await self.unregisterOne($0) }
        // After all of them: a registration that the store forgets must have ended here.
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

    /// Forgets the oldest ended registrations of a device; a failure is made up for when the next one ends.
    private func forgetEnded(_ device: DeviceNumber) async {
        guard let forgotten = try? await store.forgetEnded(device, keeping: configuration.endedAppsPerDevice) else {
            return
        }
        for slot in forgotten { postOffice.forgetRegistration(slot) }
        numbers.withLock { $0.counts[device]?.ended -= Int32(forgotten.count) }
    }

    /// Stores whether the user wants an app's notifications; if not, the stored one is discarded.
    /// - Throws: If the store fails; nothing changes then.
    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        guard var registration = postOffice.registration(slot) else { return }
        try await store.setEnabled(enabled, for: slot)
        registration.isEnabled = enabled
        postOffice.setRegistration(registration)
    }

    /// Stores whether the device saves power.
    /// - Throws: If the store fails, or ``NewerConnection``.
    package func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        try await store.setSavingPower(saving, for: device, fence: fence)
    }

    /// Takes a device's session over; see ``RegistryStore/beginSession(_:replacing:of:fence:_:)``.
    package func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    ) {
        store.beginSession(session, replacing: read, of: device, fence: fence, done)
    }

    /// Stores a device's session, or removes it with nil; see ``RegistryStore/setSession(_:for:fence:_:)``.
    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        store.setSession(session, for: device, fence: fence, done)
    }

    // MARK: - For the feedback service

    /// The dead tokens of an app to which a provider has sent, oldest first.
    /// - Throws: If the store cannot be read.
    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        try await store.feedback(for: app, limit: limit)
    }

    /// Removes records that their provider has received.
    /// - Throws: If the store fails; they are reported again then.
    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        try await store.clearFeedback(records)
        postOffice.feedback.forget(records.map(\.slot))
    }

    /// Whether an app was registered again since.
    package func isBack(_ record: FeedbackRecord) -> Bool {
        postOffice.registration(record.slot)?.isLive ?? false
    }
}
