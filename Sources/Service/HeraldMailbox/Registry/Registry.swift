package import HeraldModel
package import Logging
import Synchronization

/// Numbers devices and apps, and changes registrations.
///
/// The registrations are in the post office's shards. A change goes to the store first, and to the shard when it is durable.
/// In a cluster the store reports the changes of all nodes, and a change of this node takes the same way.
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

    struct Numbers: Sendable {
        var devices: [DeviceID: DeviceNumber] = [:]
        var deviceNames: [DeviceNumber: DeviceID] = [:]
        var apps: AppNames
        /// The number of registrations of each device that has, or had, some.
        var counts: [DeviceNumber: Counts] = [:]
    }

    struct Counts: Sendable {
        var live: Int32 = 0
        var ended: Int32 = 0
    }

    let configuration: RegistryConfiguration
    let store: any RegistryStore
    let postOffice: PostOffice
    let directory: any ConnectionDirectory
    let clock: any WallClock
    let logger: Logger
    let numbers: Mutex<Numbers>

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
        store.follow(self)
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

    /// The environments that have apps.
    package var environments: [PushEnvironment] {
        numbers.withLock { $0.apps.environments }
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

    /// Whether a device is connected to another node of the cluster.
    package func isHeldElsewhere(_ id: DeviceID) -> Bool {
        number(of: id).map { directory.isHeldElsewhere($0) } ?? false
    }

    /// Admits a device whose certificate is verified.
    /// - Throws: ``ClientGone``, or if the store or the directory fails; the device is refused, and tries again.
    package func arrive(_ id: DeviceID, _ client: @escaping ClientCheck) async throws -> Arrival {
        let number: DeviceNumber
        if let known = self.number(of: id) {
            number = known
        } else {
            number = try await store.number(of: id)
            changed(.device(id, number))
        }
        return try await withCheckedThrowingContinuation { continuation in
            arrive(number, client) { continuation.resume(with: $0) }
        }
    }

    /// Admits a device without waiting; fails if its number is not known.
    ///
    /// `done` is called once, from any thread, and returns at once.
    package func arriveAgain(
        _ id: DeviceID,
        _ client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void
    ) {
        guard let number = self.number(of: id) else { return done(.failure(UnknownDevice())) }
        arrive(number, client, done)
    }

    private struct UnknownDevice: Error {}

    private func arrive(
        _ number: DeviceNumber,
        _ client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<Arrival, any Error>) -> Void
    ) {
        directory.claim(number, for: client) { [store, directory] claim in
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

    /// The state that other nodes change too; nil for a service of one node.
    package var shared: (any SharedState)? { store.shared }

    // MARK: - For the feedback service

    /// Learns all registrations that other nodes have made or ended, and the keys of all their tokens.
    /// - Throws: If they cannot be learned.
    package func catchUp() async throws {
        try await store.shared?.catchUp(.trust)
        try await store.shared?.catchUp(.allRegistrations)
    }

    /// The dead tokens of an app to which a provider has sent, oldest first.
    /// - Throws: If the store cannot be read.
    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        try await store.feedback(for: app, limit: limit)
    }

    /// Removes records that their provider has received.
    /// - Throws: If the store fails; they are reported again then.
    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        try await store.clearFeedback(records)
        for record in records { changed(.feedbackCleared(record.slot)) }
    }

    /// Whether an app was registered again since.
    package func isBack(_ record: FeedbackRecord) -> Bool {
        postOffice.registration(record.slot)?.isLive ?? false
    }
}

/// Changes of the registry, of this node or another one.
extension Registry: RegistrySink {
    package func apply(_ changes: [RegistryChange]) {
        for change in changes { apply(change) }
    }

    /// Takes over a change that this node has stored; a store with shared state reports it itself.
    func changed(_ change: RegistryChange) {
        if store.shared == nil { apply(change) }
    }

    private func apply(_ change: RegistryChange) {
        switch change {
        case .device(let id, let number):
            numbers.withLock { numbers in
                numbers.devices[id] = number
                numbers.deviceNames[number] = id
            }
        case .app(let record):
            let now = clock.now()
            numbers.withLock { $0.apps.made(record, now: now) }
            postOffice.setNumber(record.number, of: record.app)
        case .appForgotten(let record):
            numbers.withLock { $0.apps.forgotten(record) }
        case .registration(let registration):
            apply(registration)
        case .registrationForgotten(let slot):
            guard let former = postOffice.registration(slot) else { return }
            postOffice.forgetRegistration(slot)
            numbers.withLock { $0.count(former, as: nil) }
        case .feedbackCleared(let slot):
            postOffice.records.feedback.forget([slot])
        }
    }

    private func apply(_ registration: Registration) {
        let former = postOffice.replaceRegistration(registration)
        let isNew = registration.isLive && !(former?.isLive(in: registration.generation) ?? false)
        if isNew { postOffice.records.feedback.forget([registration.slot]) }
        numbers.withLock { numbers in
            numbers.count(former, as: registration)
            if isNew { numbers.apps.noteRegistration(registration.slot.app) }
        }
    }
}

extension Registry.Numbers {
    /// Counts a registration that was another one, or none, until now.
    fileprivate mutating func count(_ former: Registration?, as registration: Registration?) {
        guard former?.isLive != registration?.isLive, let device = (registration ?? former)?.slot.device else { return }
        if let former { add(-1, to: device, isLive: former.isLive) }
        if let registration { add(1, to: device, isLive: registration.isLive) }
    }

    private mutating func add(_ number: Int32, to device: DeviceNumber, isLive: Bool) {
        if isLive {
            counts[device, default: Registry.Counts()].live += number
        } else {
            counts[device, default: Registry.Counts()].ended += number
        }
    }
}

/// Names of apps, and their numbers.
extension Registry {
    /// Calls `body` with the number of an app, a new one for a new app; the app is not forgotten meanwhile.
    /// - Throws: ``RegistrationRefusal`` of a new app, or if the store or `body` fails.
    package func withNumber<Value: Sendable>(
        of app: App,
        for origin: AppOrigin?,
        _ body: (AppNumber) async throws -> Value
    ) async throws -> Value {
        let now = clock.now()
        var pin = numbers.withLock { $0.apps.pin(app, for: origin, now: now) }
        if case .refused(_, let isFirst) = pin, let shared = store.shared {
            // Another node may have made the app, or forgotten others.
            try await shared.catchUp(.apps)
            pin = numbers.withLock { $0.apps.pin(app, for: origin, now: now) }
            if case .refused(let refusal, _) = pin { pin = .refused(refusal, isFirst: isFirst) }
        }
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
        changed(.app(AppRecord(app: app, number: number, origin: origin, created: now)))
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
        defer { numbers.withLock { $0.apps.endForgetting(app) } }
        let usage = try await store.appUsages(number).first
        guard let usage, usage.isUnused else { return usage }
        for slot in try await store.forgetApp(number, at: clock.now()) { changed(.registrationForgotten(slot)) }
        changed(.appForgotten(usage.record))
        return usage
    }
}
