import Foundation
public import HeraldDevice
import HeraldModel

/// A simulated device: shows notifications according to its settings, language and state, and runs apps.
///
/// ``Phone`` decides, the agent performs: records and state first. A notification is acknowledged once it is durable, and
/// shown exactly once, even if the agent is killed.
public actor DeviceAgent {
    struct Programs {
        let runner: ProgramRunner
        let runs: AsyncStream<PhoneRun>
        let queue: AsyncStream<PhoneRun>.Continuation
        /// The numbers of the queued and running programs; a run from before the start is started once.
        var queued: Set<Int> = []

        init(_ runner: ProgramRunner) {
            self.runner = runner
            (runs, queue) = AsyncStream.makeStream()
        }
    }

    /// The listeners to the device's events.
    private struct Audience {
        var observe: @Sendable (AgentEvent) -> Void = { _ in }
        /// The apps whose questions for permission it has heard.
        var asked: Set<Topic> = []
        var watchers: [Int: AsyncStream<PhoneSnapshot>.Continuation] = [:]
        var waiters: [Int: (names: Set<String>, found: AsyncStream<DisplayRecord>.Continuation)] = [:]
        private var lastID = 0

        mutating func nextID() -> Int {
            lastID += 1
            return lastID
        }
    }

    let folder: AgentFolder
    let connection: any ServiceConnection
    let clock: any WallClock
    let bundleLimits = BundleLimits()
    let limits: PhoneLimits
    private(set) var programs: Programs
    let displayLog: DisplayLog
    /// Sentences for the user about files that this version cannot read, and which it has set aside.
    package nonisolated let faults: [String]
    var phone: Phone
    private var written: PhoneState
    private var audience = Audience()
    private var sounds: [Topic: Date] = [:]
    var peers: [Topic: LocalPeer] = [:]
    var connections = 0

    /// Creates a device on a connection without apps; without a folder for its apps and state it keeps nothing.
    ///
    /// `device` is its identifier, and `service` is `host:port`, for people.
    /// - Throws: ``DeviceError/Code/badFolder``, ``DeviceError/Code/folderInUse``.
    public init(connection: any ServiceConnection, device: String, service: String, folder: String? = nil) throws {
        let folder = try folder.map { try AgentFolder($0) } ?? .temporary()
        try self.init(connection: connection, device: device, service: service, folder: folder, clock: MachineClock())
    }

    init(
        connection: any ServiceConnection,
        device: String,
        service: String,
        folder: AgentFolder,
        clock: any WallClock,
        limits: PhoneLimits = PhoneLimits(),
        programLimits: ProgramLimits = ProgramLimits()
    ) throws {
        self.connection = connection
        self.folder = folder
        self.clock = clock
        self.limits = limits
        programs = Programs(ProgramRunner(folder, limits: programLimits))
        displayLog = try DisplayLog(folder.isKept ? folder.displayLogPath : nil)
        var (state, fault) = try folder.readState()
        var faults = [fault, displayLog.fault].compactMap { $0 }
        var bundles: [Topic: AppBundle] = [:]
        for index in state.apps.indices where state.apps[index].information.hasBundle {
            let topic = state.apps[index].topic
            do {
                (state.apps[index].information, bundles[topic]) = try folder.read(topic, limits: bundleLimits)
            } catch {
                // The other apps go on, and so do the commands that mend this one.
                faults.append("\(error): \(topic) has no bundle until you install it again, or remove it")
            }
        }
        self.faults = faults
        written = state
        phone = Phone(device: device, service: service, state: state, bundles: bundles, limits: limits)
        phone.machineZone = MachineTimeZone.name()
    }

    /// The time of the device's clock.
    var now: WallTime { clock.now() + .milliseconds(Int64(phone.state.clockAhead * 1000)) }

    /// A device that does not run.
    ///
    /// The service learns of changes when it runs.
    /// - Throws: ``DeviceError/Code/badFolder``, ``DeviceError/Code/folderInUse``.
    package static func stopped(folder: String) throws -> DeviceAgent {
        try DeviceAgent(connection: DetachedConnection(), device: "", service: "", folder: folder)
    }

    /// Runs the device until the task is cancelled, or the service refuses it permanently.
    /// - Parameter observe: Called with one event at a time.
    /// - Throws: ``DeviceError``, `CancellationError`.
    public nonisolated func run(_ observe: @escaping @Sendable (AgentEvent) -> Void = { _ in }) async throws {
        defer { folder.discard() }
        try await begin(observe)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await self.runPrograms() }
            group.addTask { try await self.tickForever() }
            if folder.isKept {
                let socket = try await LocalSocket.open(folder)
                group.addTask {
                    try await socket.serve(self)
                    try Task.checkCancellation()
                    throw DeviceError(.badFolder, "the local socket was closed: start the agent again")
                }
            }
            group.addTask { try await self.holdConnection() }
            // The first failure ends the device, so that it never runs without one of its parts.
            try await group.next()
        }
    }

    private func begin(_ observe: @escaping @Sendable (AgentEvent) -> Void) throws {
        audience.observe = observe
        audience.asked = []
        try apply { phone, now in
            for fault in faults { phone.note(fault, now) }
            return phone.start(now)
        }
        for fault in faults { audience.observe(.fault(fault)) }
    }

    private nonisolated func holdConnection() async throws {
        do {
            try await connection.run { try await self.handle($0) }
        } catch let error as DeviceError {
            await refused(error)
            throw error
        }
    }

    private func refused(_ error: DeviceError) {
        phone.refused(error.message, now)
        publish()
    }

    // MARK: - Events

    private func handle(_ event: DeviceEvent) throws {
        switch event {
        case .notification(let notification): return try receive(notification)
        case .connected:
            try apply { phone, now in
                phone.connected(now)
                return []
            }
        case .token(let token, let topic): try apply { phone, now in phone.gotToken(token, for: topic, now) }
        case .appRefused(let topic, let reason):
            try apply { phone, now in phone.appRefused(topic, reason: reason, now) }
        case .removed(let topic):
            try apply { phone, _ in
                phone.removed(topic)
                return []
            }
        case .settingsTaken(let topic, let isEnabled):
            try apply { phone, _ in
                phone.settingsTaken(topic, isEnabled: isEnabled)
                return []
            }
        case .announced, .announcementRefused: break
        case .subscribed(let channel):
            try apply { phone, now in phone.channelAnswered(channel, refused: nil, now) }
        case .channelRefused(let channel, let reason):
            try apply { phone, now in phone.channelAnswered(channel, refused: reason, now) }
        case .disconnected(let reason, let pause):
            try apply { phone, now in
                phone.disconnected(reason, nextAttempt: pause, now)
                return []
            }
        }
        audience.observe(.connection(event))
    }

    /// Takes a notification from the connection or from a test.
    func receive(_ notification: ReceivedNotification) throws {
        refreshSounds(of: notification.topic)
        var reception = Phone.Reception()
        do {
            try apply { phone, now in
                reception = phone.receive(notification, now)
                return reception.effects
            }
        } catch let error where (error as? DeviceError)?.code != .badFolder {
            // It must not come again and again. What the disk cannot take comes again; this one is recorded, and skipped.
            reception = phone.skip(notification, "\(error)", now)
            try displayLog.take(reception.effects)
            for effect in reception.effects { try perform(effect) }
            publish()
        }
        audience.observe(.notification(notification, reception.record, isRepeated: reception.isRepeated))
    }

    /// Reads the bundle again if the sounds in the container have changed.
    private func refreshSounds(of topic: Topic) {
        guard let index = phone.owner(of: topic), phone.bundles[phone.state.apps[index].topic] != nil else { return }
        let app = phone.state.apps[index].topic
        let path = folder.containerPath(app) + "/Library/Sounds"
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard let changed = facts?[.modificationDate] as? Date else { return }
        guard sounds.updateValue(changed, forKey: app) != changed else { return }
        if let (_, bundle) = try? folder.read(app, limits: bundleLimits) { phone.bundles[app] = bundle }
    }

    /// Reads the sounds again that pending local notifications may play.
    func refreshSoundsOfPending() {
        for topic in Set(phone.state.pending.all.map(\.topic)) { refreshSounds(of: topic) }
    }

    private func runPrograms() async throws {
        let runner = programs.runner
        try await withThrowingDiscardingTaskGroup { group in
            for await run in programs.runs {
                group.addTask {
                    let outcome = await runner.run(run)
                    // The end of the agent interrupted the run: it is repeated after the next start.
                    guard !Task.isCancelled else { return }
                    try await self.ended(run, outcome)
                }
            }
        }
        throw CancellationError()
    }

    /// Ends a run; if that cannot be made durable, the run is repeated after the next start.
    private func ended(_ run: PhoneRun, _ outcome: Program.Outcome) throws {
        programs.queued.remove(run.number)
        if let words = outcome.words {
            audience.observe(.fault("\(run.app): its program \(run.event.rawValue) \(words)"))
        }
        try apply { phone, now in
            guard run.event == .service else {
                return phone.runEnded(run.number, outcome.background, now, words: outcome.words)
            }
            let changed = outcome.payload
            let verdict: DisplayRecord.ExtensionOutcome =
                changed != nil ? .changed : outcome.end == .ended ? .timedOut : .failed
            let receptions = phone.serviceEnded(run.number, verdict, payload: changed, now)
            for record in receptions.compactMap(\.record) { audience.observe(.presented(record)) }
            return receptions.flatMap(\.effects)
        }
    }

    private func tickForever() async throws {
        while true {
            try await Task.sleep(for: .seconds(1))
            phone.machineZone = MachineTimeZone.name()
            guard phone.hasToTick(now) else { continue }
            refreshSoundsOfPending()
            try apply { phone, now in phone.tick(now) }
        }
    }

    /// Lets the phone decide, makes the decision durable, and performs its effects.
    ///
    /// If the decision cannot be made durable, the phone is unchanged.
    func apply(_ decide: (inout Phone, WallTime) throws -> [PhoneEffect]) throws {
        let before = phone
        let effects: [PhoneEffect]
        let now = now
        do {
            effects = try decide(&phone, now)
            try displayLog.take(effects)
            try keepState()
        } catch {
            phone = before
            throw error
        }
        for effect in effects { try perform(effect) }
        try keepState()
        publish()
    }

    private func keepState() throws {
        guard phone.state != written else { return }
        phone.state.lastTime = phone.lastTime
        try folder.write(phone.state, limit: limits.stateBytes)
        written = phone.state
    }

    private func perform(_ effect: PhoneEffect) throws {
        switch effect {
        case .record(let record):
            let names = Set([record.apnsID, record.local].compactMap(\.self))
            for waiter in audience.waiters.values where !waiter.names.isDisjoint(with: names) {
                waiter.found.yield(record)
            }
            if record.local != nil { audience.observe(.local(record)) }
        case .amend: break
        case .register(let app): connection.install(app)
        case .present(let token, let topic): connection.present(token, for: topic)
        case .unregister(let topic, let environment): connection.remove(topic, in: environment)
        case .subscribe(let channel): connection.subscribe(to: channel)
        case .unsubscribe(let channel): connection.unsubscribe(from: channel)
        case .setEnabled(let enabled, let topic): connection.setEnabled(enabled, for: topic)
        case .setSaving(let saving): connection.setSaving(saving)
        case .setNetwork(let isOn): connection.setNetwork(isOn)
        case .run(let run): if programs.queued.insert(run.number).inserted { programs.queue.yield(run) }
        case .endPrograms(let topic): programs.runner.end(topic)
        case .notifyApp(let topic, let message): peers[topic]?.send(LocalMessage.line(message))
        case .deleteFiles(let topic):
            do {
                try folder.delete(topic)
                phone.deleted(topic)
            } catch {
                // The app is removed; the next start tries again.
                phone.note("\(error)", now)
                audience.observe(.fault("\(error)"))
            }
        }
    }

    // MARK: - Views

    /// Publishes the snapshot to all watchers, and reports new permission requests.
    func publish() {
        if !audience.watchers.isEmpty {
            let snapshot = self.snapshot()
            for (number, watcher) in audience.watchers {
                // A stream that is not read any more is removed at the next change.
                if case .terminated = watcher.yield(snapshot) { audience.watchers[number] = nil }
            }
        }
        let waiting = Set(phone.state.apps.filter { $0.permission == nil }.map(\.topic))
        let new = waiting.subtracting(audience.asked)
        audience.asked = waiting
        guard !new.isEmpty else { return }
        for app in phone.snapshot(now).apps where new.contains(app.topic) { audience.observe(.question(app)) }
    }

    func nextID() -> Int { audience.nextID() }

    /// How it looks now, and after each change; of several unread snapshots, only the newest is kept.
    public func snapshots() -> AsyncStream<PhoneSnapshot> {
        let (stream, watcher) = AsyncStream<PhoneSnapshot>.makeStream(bufferingPolicy: .bufferingNewest(1))
        audience.watchers[audience.nextID()] = watcher
        watcher.yield(snapshot())
        return stream
    }

    /// The display record of an `apns-id`, or the newest one of a local notification with this identifier, once it is shown;
    /// nil if it is not shown in time.
    public func displayRecord(named name: String, within time: Duration = .zero) async -> DisplayRecord? {
        // An `apns-id` in any case, or a local identifier as it was given, which may look like one.
        let names = Set([NotificationID(name)?.description, name].compactMap(\.self))
        for name in names { if let record = displayRecord(name) { return record } }
        guard time > .zero else { return nil }
        let (found, continuation) = AsyncStream<DisplayRecord>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = audience.nextID()
        audience.waiters[number] = (names, continuation)
        defer { audience.waiters[number] = nil }
        return await found.first(within: time)
    }
}
