import Foundation
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldService
import HeraldStores
import HeraldTrust
import Logging
import ServiceLifecycle

/// Where a sender finds the service, and with what.
package struct ExamPlace: Sendable {
    package let host: String
    package fileprivate(set) var port: Int
    /// The file of the authorities that it trusts.
    package let authorities: String
    /// The file of the key for its provider tokens.
    package let key: String
    package let keyID: String
    package let team: String
    package let topic: String

    /// All but the port, under the names that adapters and commands know.
    var texts: [String: String] {
        ["host": host, "ca": authorities, "key": key, "key_id": keyID, "team": team, "topic": topic]
    }
}

/// The service that senders are examined against: a whole one, in this process.
actor ExamStage {
    static let team = "EXAM000001"
    static let topic = "com.example.exam"
    private struct Running {
        let controls: ServiceControls
        let group: ServiceGroup
        let run: Task<Void, any Error>
        let feed: Task<Void, Never>
    }

    private var configuration = ServerConfiguration()
    private let folder: DataFolder
    private let hosts: [String]
    private let certificate: [UInt8]
    private let impostors: Impostors
    /// The number of the last device; no scenario has devices of another one, or of an earlier exam.
    private var lastDevice: UInt64
    private(set) var place: ExamPlace
    private(set) var registered: [(slot: Slot, token: DeviceToken)] = []
    private var running: Running?
    private var ledger: Ledger?
    /// The number of the last request that was read from the running service.
    private var lastCaught: UInt64 = 0
    private var isImpostor = false
    private let silent = Logger(label: "exam") { _ in SwiftLogNoOpLogHandler() }

    /// Makes what is missing in the data folder, and starts a service on it.
    ///
    /// `hosts` are the names by which senders find the service, the first of which they are told. The port is that of
    /// the provider API; 0 for a free one.
    /// - Throws: An error that tells the operator what to do.
    init(at path: String, hosts: [String], port: Int) async throws {
        configuration.data = path
        for listener in configuration.listeners { configuration[keyPath: listener].port = 0 }
        configuration.consolePort = 0
        configuration.gateway.listener.port = port
        self.hosts = hosts
        let host = hosts.first ?? "localhost"
        configuration.hostnames = hosts
        configuration.clock = .shifted(by: .zero)
        configuration.catchScope = .all
        folder = try DataFolder.open(path, mayCreate: true)
        let now = ServiceClock().now()
        let trust = try await TrustFolder.create(
            at: folder.path,
            hostnames: configuration.hostnames,
            store: TrustDatabase.open,
            now: now
        )
        let (key, id) = try await Self.key(in: folder, trust, now)
        certificate = try SafeFile.read(trust.layout.server)
        impostors = try Impostors(in: folder.path, trust, hosts: hosts, now: now)
        lastDevice = UInt64(clamping: now.milliseconds)
        place = ExamPlace(
            host: host,
            port: port,
            authorities: impostors.authorityPath,
            key: key,
            keyID: id,
            team: Self.team,
            topic: Self.topic
        )
        try await start()
    }

    /// The key of the senders, made once for a data folder.
    private static func key(
        in folder: DataFolder,
        _ trust: TrustFolder,
        _ now: WallTime
    ) async throws -> (path: String, id: String) {
        let (prefix, suffix) = ("AuthKey_", ".p8")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        if let name = names.first(where: { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }) {
            return ("\(folder.path)/\(name)", String(name.dropFirst(prefix.count).dropLast(suffix.count)))
        }
        let topics = [Topic(topic)].compactMap(\.self)
        let all = Set(PushEnvironment.allCases)
        let key = try await trust.providers.makeKey(team: team, topics: topics, environments: all, now: now)
        let path = "\(folder.path)/\(key.fileName)"
        try SafeFile.write(Array(key.pem.utf8), to: path, mode: 0o600)
        return (path, key.credential.id)
    }

    // MARK: - The service

    private func start() async throws {
        let (ready, isReady) = AsyncStream.makeStream(of: Void.self)
        var process = ServiceProcess(logger: silent, lifecycleLogger: silent)
        process.announce = { if $0 == "ready" { isReady.yield() } }
        let service = try await HeraldService(configuration, in: process)
        let group = ServiceGroup(configuration: .init(services: [.init(service: service)], logger: silent))
        let run = Task {
            defer { isReady.finish() }
            try await group.run()
        }
        guard await ready.first(where: { _ in true }) != nil else {
            // A cancelled task does not wait for it, either.
            await group.triggerGracefulShutdown()
            try await run.value
            throw CommandError(.unreachable, "the exam's service has ended before it was ready")
        }
        guard let port = ListeningAddresses.read(from: folder)?.api else {
            throw CommandError(.unreachable, "the exam's service does not listen for providers")
        }
        place.port = port
        // A sender finds the service again after a restart.
        configuration.gateway.listener.port = port
        lastCaught = 0
        let controls = service.controls
        let arrivals = controls.catcher.arrivals()
        let feed = Task { [weak self] in
            guard let arrivals else { return }
            for await _ in arrivals { await self?.take(from: controls) }
        }
        running = Running(controls: controls, group: group, run: run, feed: feed)
    }

    /// Stops the service; what it has seen is in the ledger then.
    func stop() async throws {
        guard let running else { return }
        self.running = nil
        await running.group.triggerGracefulShutdown()
        try await running.run.value
        running.feed.cancel()
        // It holds the service, and so the lock of its folder.
        await running.feed.value
        take(from: running.controls)
    }

    private func take(from service: ServiceControls) {
        let (messages, last) = service.catcher.messages(after: lastCaught)
        let missed = last - lastCaught - min(last - lastCaught, UInt64(messages.count))
        lastCaught = last
        if missed > 0 { ledger?.noteMissed(Int(clamping: missed)) }
        for message in messages.reversed() { ledger?.note(message) }
    }

    // MARK: - Scenarios

    /// Begins a scenario: nothing of the former one is left, and each device has a token of its own.
    /// - Throws: An error of the store.
    func begin(_ ledger: Ledger, devices: Int) async throws {
        guard let running, let topic = Topic(Self.topic) else { return }
        let numbers = (1...UInt64(devices)).map { DeviceNumber(lastDevice + $0) }
        lastDevice += UInt64(devices)
        registered = try await running.controls.register(App(topic: topic, environment: .production), on: numbers)
        take(from: running.controls)
        self.ledger = ledger
    }

    func end() async throws {
        if let running { take(from: running.controls) }
        ledger = nil
        endDrills()
        if let shift = running?.controls.clock.shift { _ = running?.controls.clock.advance(by: .zero - shift) }
        if isImpostor {
            isImpostor = false
            configuration.hostnames = hosts
            try await replace(certificate)
        }
    }

    func drill(_ kind: Drill.Kind, slot: Slot?, first: Int?) throws {
        let target = slot.map { Drill.Target.slot($0) } ?? .everybody
        let drill = Drill(kind: kind, target: target, first: first, duration: DrillLimits.duration.upperBound, seed: 0)
        guard running?.controls.drills.start(drill) != nil else {
            throw CommandError(.refused, "a drill of the exam does not start")
        }
    }

    func endDrills() {
        _ = running?.controls.drills.stopAll()
    }

    func advance(by duration: Duration) {
        _ = running?.controls.clock.advance(by: duration)
    }

    func restart() async throws {
        try await stop()
        try await start()
    }

    func impersonate(_ impostor: Impostor) async throws {
        isImpostor = true
        // The service would refuse to start with a certificate that lacks a name it was asked for.
        configuration.hostnames = []
        switch impostor {
        case .foreignAuthority: try await replace(impostors.unknown)
        case .foreignName: try await replace(impostors.misnamed)
        }
    }

    private func replace(_ certificate: [UInt8]) async throws {
        try await stop()
        try SafeFile.write(certificate, to: TrustLayout(data: folder.path).server, mode: 0o600)
        try await start()
    }

    /// The time of the service's clock.
    var now: WallTime { running?.controls.clock.now() ?? ServiceClock().now() }
}
