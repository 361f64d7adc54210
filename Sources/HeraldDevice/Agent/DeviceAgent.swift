// `stat` is a declaration of whichever of these modules the compiler has read first.
import CoreFoundation
import Foundation
package import HeraldModel
import Synchronization

#if canImport(CDispatch)
import CDispatch
#endif

/// A device made of software: what comes is shown as its settings, language and state demand, and apps react to it.
///
/// ``Phone`` decides; this carries it out, records and state first. A notification is acknowledged when it is durable, and
/// shown once, whatever is killed when.
public actor DeviceAgent {
    let folder: AgentFolder
    let line: any DeviceLine
    let clock: any WallClock
    let bundleLimits = BundleLimits()
    let limits: PhoneLimits
    let runner: ProgramRunner
    private let runs: AsyncStream<PhoneRun>
    private let runQueue: AsyncStream<PhoneRun>.Continuation
    /// The numbers of the runs that are in the queue or beyond: one that came before the device ran is begun once.
    private var queued: Set<Int> = []
    private let saw: SawFile
    var phone: Phone
    private var written: PhoneState
    private var announced: Set<Topic> = []
    private var observe: @Sendable (AgentEvent) -> Void = { _ in }
    private var sounds: [Topic: Date] = [:]
    // Those who look at it.
    var lastWatcher = 0
    var watchers: [Int: AsyncStream<PhoneSnapshot>.Continuation] = [:]
    var waiters: [Int: (id: String, found: AsyncStream<SawRecord>.Continuation)] = [:]
    var peers: [Topic: LocalPeer] = [:]
    var connections = 0

    /// Makes a device.
    /// - Parameters:
    ///   - line: Its connection, with no apps installed.
    ///   - device: Its identifier.
    ///   - service: The service, as `host:port`, for people.
    ///   - folder: Where it keeps apps and state; nil for a device that keeps nothing.
    /// - Throws: ``DeviceError/Code/badFolder``, ``DeviceError/Code/folderInUse``.
    public init(line: any DeviceLine, device: String, service: String, folder: String? = nil) throws {
        try self.init(line: line, device: device, service: service, folder: folder, clock: AgentClock())
    }

    /// Makes a device with a clock of somebody else's.
    package init(
        line: any DeviceLine,
        device: String,
        service: String,
        folder: String?,
        clock: any WallClock
    ) throws {
        let folder = try folder.map { try AgentFolder($0) } ?? .temporary()
        try self.init(line: line, device: device, service: service, folder: folder, clock: clock)
    }

    init(
        line: any DeviceLine,
        device: String,
        service: String,
        folder: AgentFolder,
        clock: any WallClock,
        limits: PhoneLimits = PhoneLimits(),
        programLimits: ProgramLimits = ProgramLimits()
    ) throws {
        self.line = line
        self.folder = folder
        self.clock = clock
        self.limits = limits
        runner = ProgramRunner(folder, limits: programLimits)
        (runs, runQueue) = AsyncStream.makeStream()
        saw = try SawFile(folder.isKept ? folder.sawPath : nil)
        var state = try folder.readState()
        var bundles: [Topic: AppBundle] = [:]
        for index in state.apps.indices where state.apps[index].information.hasBundle {
            let topic = state.apps[index].topic
            do {
                (state.apps[index].information, bundles[topic]) = try folder.read(topic, limits: bundleLimits)
            } catch let error as BundleError {
                throw DeviceError(.badFolder, "\(error): install \(topic) again, or remove it")
            }
        }
        written = state
        phone = Phone(device: device, service: service, state: state, bundles: bundles, limits: limits)
    }

    /// A device that does not run: what is done to it, the service hears when it does.
    /// - Throws: ``DeviceError/Code/badFolder``, ``DeviceError/Code/folderInUse``.
    package static func resting(folder: String) throws -> DeviceAgent {
        try DeviceAgent(line: NoLine(), device: "", service: "", folder: folder)
    }

    /// Is a device until the task is cancelled, or the service refuses it for good.
    /// - Parameter observe: Told what happens, one thing after the other.
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
            group.addTask { try await self.holdLine() }
            // Whichever fails first ends all: a device that has lost a part of itself would say nothing of it.
            try await group.next()
        }
    }

    private func begin(_ observe: @escaping @Sendable (AgentEvent) -> Void) throws {
        self.observe = observe
        announced = []
        try carryOut { phone, now in phone.start(now) }
    }

    private nonisolated func holdLine() async throws {
        do {
            try await line.run { try await self.handle($0) }
        } catch let error as DeviceError {
            await refused(error)
            throw error
        }
    }

    private func refused(_ error: DeviceError) {
        phone.refused(error.message, clock.now())
        publish()
    }

    // What happens.

    private func handle(_ event: DeviceEvent) throws {
        switch event {
        case .notification(let notification): return try receive(notification)
        case .connected:
            try carryOut { phone, now in
                phone.connected(now)
                return []
            }
        case .token(let token, let topic): try carryOut { phone, now in phone.gotToken(token, for: topic, now) }
        case .appRefused(let topic, let reason):
            try carryOut { phone, now in phone.appRefused(topic, reason: reason, now) }
        case .removed(let topic):
            try carryOut { phone, _ in
                phone.removed(topic)
                return []
            }
        case .settingsTaken(let topic):
            try carryOut { phone, _ in
                phone.settingsTaken(topic)
                return []
            }
        case .disconnected(let reason, let pause):
            try carryOut { phone, now in
                phone.disconnected(reason, nextAttempt: pause, now)
                return []
            }
        }
        observe(.connection(event))
    }

    /// A notification came, over the connection or from a test.
    func receive(_ notification: ReceivedNotification) throws {
        refreshSounds(of: notification.topic)
        var reception = Phone.Reception()
        try carryOut { phone, now in
            reception = phone.receive(notification, now)
            return reception.orders
        }
        observe(.notification(notification, reception.record, isRepeated: reception.isRepeated))
    }

    /// The container's sounds may have changed since the bundle was read.
    private func refreshSounds(of topic: Topic) {
        guard let index = phone.owner(of: topic), phone.bundles[phone.state.apps[index].topic] != nil else { return }
        let app = phone.state.apps[index].topic
        let path = folder.containerPath(app) + "/Library/Sounds"
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard let changed = facts?[.modificationDate] as? Date else { return }
        guard sounds.updateValue(changed, forKey: app) != changed else { return }
        if let (_, bundle) = try? folder.read(app, limits: bundleLimits) { phone.bundles[app] = bundle }
    }

    private func runPrograms() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for await run in runs {
                group.addTask {
                    let outcome = await self.runner.run(run)
                    // Interrupted by the agent's end: it is run again when the agent is back.
                    guard !Task.isCancelled else { return }
                    try await self.ended(run, outcome)
                }
            }
        }
        throw CancellationError()
    }

    /// What cannot be kept is not shown; the run is still on record, and repeated when the agent is back.
    private func ended(_ run: PhoneRun, _ outcome: Program.Outcome) throws {
        queued.remove(run.number)
        try carryOut { phone, now in
            guard run.event == .service else {
                return phone.runEnded(run.number, outcome.background, now, words: outcome.words)
            }
            let changed = outcome.payload
            let verdict: SawRecord.ExtensionOutcome =
                changed != nil ? .changed : outcome.end == .ended ? .timedOut : .failed
            let reception = phone.serviceEnded(run.number, verdict, payload: changed, now)
            if let record = reception.record { observe(.presented(record)) }
            return reception.orders
        }
    }

    private func tickForever() async throws {
        while true {
            try await Task.sleep(for: .seconds(1))
            let now = clock.now()
            guard let next = phone.nextTick, next <= now.unixSeconds else { continue }
            try carryOut { phone, now in phone.tick(now) }
        }
    }

    /// Lets the phone decide, makes the decision durable, and carries it out.
    ///
    /// What cannot be made durable was not decided: the phone is as it was.
    func carryOut(_ decide: (inout Phone, WallTime) throws -> [PhoneOrder]) throws {
        let before = phone
        let orders: [PhoneOrder]
        do {
            orders = try decide(&phone, clock.now())
            try saw.take(orders)
            try keepState()
        } catch {
            phone = before
            throw error
        }
        for order in orders { try perform(order) }
        try keepState()
        publish()
    }

    private func keepState() throws {
        guard phone.state != written else { return }
        try folder.write(phone.state)
        written = phone.state
    }

    private func perform(_ order: PhoneOrder) throws {
        switch order {
        case .record(let record):
            for waiter in waiters.values where waiter.id == record.apnsID { waiter.found.yield(record) }
        case .amend: break
        case .register(let app): line.install(app)
        case .present(let token, let topic): line.present(token, for: topic)
        case .unregister(let topic, let environment): line.remove(topic, in: environment)
        case .setEnabled(let enabled, let topic): line.setEnabled(enabled, for: topic)
        case .setSaving(let saving): line.setSaving(saving)
        case .setNetwork(let isOn): line.setNetwork(isOn)
        case .run(let run): if queued.insert(run.number).inserted { runQueue.yield(run) }
        case .endPrograms(let topic): runner.end(topic)
        case .tell(let topic, let news): peers[topic]?.send(LocalMessage.news(news))
        case .deleteFiles(let topic):
            try folder.delete(topic)
            phone.deleted(topic)
        }
    }

    // For those who look at it.

    /// Tells everybody who looks at it how it looks now.
    func publish() {
        if !watchers.isEmpty {
            let snapshot = phone.snapshot(clock.now())
            for (number, watcher) in watchers {
                // One that is not read any more goes with the next change.
                if case .terminated = watcher.yield(snapshot) { watchers[number] = nil }
            }
        }
        let asking = Set(phone.state.apps.filter { $0.permission == nil }.map(\.topic))
        let new = asking.subtracting(announced)
        announced = asking
        guard !new.isEmpty else { return }
        for app in phone.snapshot(clock.now()).apps where new.contains(app.topic) { observe(.question(app)) }
    }

    func record(_ id: String) -> SawRecord? { saw[id] }
}

/// The time of the system.
struct AgentClock: WallClock {
    func now() -> WallTime {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}

/// The line of a device that is not running: what is to be said is said when it runs.
struct NoLine: DeviceLine {
    func run(_ handle: (DeviceEvent) async throws -> Void) async throws {}
    func install(_ app: DeviceApp) {}
    func present(_ token: DeviceToken, for topic: Topic) {}
    func remove(_ topic: Topic, in environment: PushEnvironment?) {}
    func setEnabled(_ enabled: Bool, for topic: Topic) {}
    func setSaving(_ saving: Bool) {}
    func setNetwork(_ isOn: Bool) {}
}
