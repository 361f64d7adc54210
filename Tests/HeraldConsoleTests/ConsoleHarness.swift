import AsyncHTTPClient
import Foundation
import HTTPTypes
import HeraldJSON
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWeb
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import Synchronization

@testable import HeraldConsole

/// A service that answers operators from memory.
final class StandInAdministration: Sendable {
    let problemsHeld = Mutex<[String]>([])
    let questions = Mutex<[JournalQuestion]>([])
    let offset = Mutex<Duration>(.zero)
    let fleet = Mutex<[String]>([])
    let reloads = Mutex(0)
    let drillsHeld = Mutex<[DrillEntry]>([])
    let drillsAsked = Mutex<[DrillRequest]>([])

    static let entry = JournalEntry(
        JournalEvent(
            time: WallTime(milliseconds: 1_700_000_000_123),
            id: NotificationID(high: 1, low: 2),
            uniqueID: NotificationID(high: 3, low: 4),
            slot: Slot(device: DeviceNumber(5), app: AppNumber(6)),
            state: .storedDeviceOffline
        ),
        device: DeviceID("phone"),
        app: Topic("com.example.app").map { App(topic: $0, environment: .sandbox) }
    )

    static let credential = CredentialEntry(
        id: "c1",
        kind: .certificate,
        serial: "0a",
        team: "TEAM000001",
        topics: [],
        environments: [.production],
        created: "2026-01-01T00:00:00.000Z",
        expires: nil,
        revoked: nil
    )

    static let device = DeviceEntry(
        id: "phone",
        name: "Phone",
        serial: "0b",
        created: "x",
        expires: "y",
        revoked: nil
    )

    static let drill = DrillEntry(
        id: 3,
        kind: "drop",
        what: "drop the connection",
        from: "operator",
        started: "x",
        ends: "y",
        secondsLeft: 41.2,
        hits: 7,
        seed: 1
    )

    /// Channels, one in each environment.
    static let channels = [(UInt64(1), PushEnvironment.sandbox), (2, .production)].compactMap { low, environment in
        Topic("com.example.app").map { topic in
            ChannelEntry(
                id: ChannelID(high: 1, low: low).base64,
                topic: topic,
                environment: environment,
                policy: 1,
                created: "2026-01-01T00:00:00.000Z",
                subscribers: 3,
                published: 2,
                delivered: 5,
                stored: true
            )
        }
    }

    var health: HealthReport {
        HealthReport(problems: problemsHeld.withLock { $0 }, drills: drillsHeld.withLock { $0.map(\.words) })
    }

    var status: ServiceStatus {
        var status = ServiceStatus(version: "1", pid: 7, started: WallTime(seconds: 0), now: WallTime(seconds: 100))
        status.environments = [.sandbox]
        status.devicesConnected = 2
        status.notificationsWaiting = 3
        status.drills = drillsHeld.withLock { $0 }
        return status
    }

    private var clock: ClockReading {
        ClockReading(now: WallTime(seconds: 100) + offset.withLock { $0 }, adjustable: true)
    }

    private func channel(_ id: ChannelID) throws -> ChannelEntry {
        guard let channel = Self.channels.first(where: { $0.id == id.base64 }) else {
            throw AdminError(.notFound, "there is no channel \(id.base64)")
        }
        return channel
    }

    /// The work of the requests that tests make.
    var operations: AdminWork {
        var api = AdminWork()
        api.on(AdminAPI.status) { _ in self.status }
        api.respond(to: AdminAPI.journal) { question, limit in
            self.questions.withLock { $0.append(question) }
            return JournalAnswer(Array(repeating: Self.entry, count: min(limit, 2)))
        }
        api.register(journal: StandInJournal(), connections: 8)
        api.register(tallies: StandInTallies())
        api.on(AdminAPI.reloadTrust) { _ in
            self.reloads.withLock { $0 += 1 }
            return self.status
        }
        api.on(AdminAPI.clock) { _ in self.clock }
        api.on(AdminAPI.advanceClock) { call in
            let duration = try call.body.duration()
            self.offset.withLock { $0 += duration }
            return self.clock
        }
        api.on(AdminAPI.acceptClock) { _ in
            ClockReading(now: WallTime(seconds: 100), adjustable: true, jump: .seconds(7200))
        }
        registerDrills(&api)
        api.on(AdminAPI.devices) { call in Page([Self.device], try call.page()) { $0.id } }
        api.on(AdminAPI.revokeDevice) { _ in
            struct Broken: Error {}
            throw Broken()
        }
        api.on(AdminAPI.credentials) { call in Page([Self.credential], try call.page()) { $0.id } }
        api.on(AdminAPI.revokeCredential) { call in
            let id = try call.path(Ask.id)
            guard id == "c1" else { throw AdminError(.notFound, "there is no credential \(id)") }
            return Self.credential
        }
        registerChannels(&api)
        return api
    }

    private func registerDrills(_ api: inout AdminWork) {
        api.on(AdminAPI.drills) { _ in self.drillsHeld.withLock { $0 } }
        api.on(AdminAPI.startDrill) { call in
            self.drillsAsked.withLock { $0.append(call.body) }
            return Self.drill
        }
        api.on(AdminAPI.stopDrill) { call in
            let id = try call.path(AdminAPI.drill)
            guard id == 3 else { throw AdminError(.notFound, "no drill \(id) is active") }
            return Self.drill
        }
        api.on(AdminAPI.stopDrills) { _ in self.drillsHeld.withLock { $0 } }
    }

    private func registerChannels(_ api: inout AdminWork) {
        api.on(AdminAPI.channels) { call in
            let topic = try call(Ask.topic)
            return Page(Self.channels.filter { topic == nil || $0.topic == topic }, try call.page()) { $0.id }
        }
        api.registerChannels { [self] id in
            try channel(id)
        } make: { [self] app, storage in
            fleet.withLock { $0.append("make \(app.topic) \(app.environment.rawValue) \(storage.rawValue)") }
            return try channel(ChannelID(high: 1, low: app.environment == .sandbox ? 1 : 2))
        } delete: { [self] id in
            fleet.withLock { $0.append("delete \(id.base64)") }
            return try channel(id)
        }
    }
}

/// A request for the control socket only.
struct EchoedText: Codable, Hashable, Sendable {
    let a: Int

    static let operation = AdminOperation<EchoedText, EchoedText>(
        .post,
        "control/echo",
        role: .admin,
        .reads,
        says: "Answers with its body."
    )
}

/// A console that listens while a test asks it things.
struct ConsoleHarness {
    let administration = StandInAdministration()
    let metrics = PrometheusRegistry()
    let live: LiveConsole
    let lines = StandInLines()
    let findings = Shared<[ProblemFinding]>([])
    let token: String
    let clock = ManualClock(WallTime(seconds: 1_800_000_000))
    let audit = AuditInMemory()
    let access: ConsoleAccess
    var mode = ConsoleMode.full

    init(token: String = "secret-token") {
        self.token = token
        live = LiveConsole(
            series: SeriesRecorder(metrics: metrics),
            refusals: RefusalBook(provider: { _ in "c1" }, app: { _ in nil }),
            lines: lines,
            clock: clock,
            signs: { [administration] in administration.status.signs },
            findings: { [findings] in findings.withLock { $0 } }
        )
        access = ConsoleAccess(adminToken: token, clock: clock)
    }

    let socketPath = "/tmp/herald-\(UUID().uuidString.prefix(8)).sock"

    /// An answer: its status, and its body as text.
    struct Answer {
        let status: UInt
        var fields = HTTPHeaders()
        let body: String

        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            try JSON.decode(type, from: Array(body.utf8))
        }
    }

    func withPort<Result: Sendable>(_ body: @Sendable (_ base: String) async throws -> Result) async throws -> Result {
        let (opened, open) = AsyncStream.makeStream(of: Int.self)
        return try await run(try console().port { open.yield($0) }) {
            for await port in opened { return try await body("http://127.0.0.1:\(port)") }
            throw CancellationError()
        }
    }

    func withSocket<Result: Sendable>(_ body: @Sendable (_ base: String) async throws -> Result) async throws -> Result
    {
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        return try await run(try console().socket { open.yield() }) {
            for await _ in opened {
                let host = socketPath.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                return try await body("http+unix://\(host)")
            }
            throw CancellationError()
        }
    }

    /// The first words of the requests whose work the console has itself.
    private static let own = [
        "links", "session", "sessions", "tokens", "audit", "problems", "refusals", "series", "events",
    ]

    func console(port: Int = 0, with added: AdminOperation<EchoedText, EchoedText>? = nil) throws -> Console {
        var configuration = ConsoleConfiguration(host: "127.0.0.1", port: port, socketPath: socketPath)
        configuration.mode = mode
        configuration.requestTimeout = .patience
        var api = administration.operations
        api.on(EchoedText.operation) { $0.body }
        let served = Set(api.rows.map(\.name))
        let rows = (AdminAPI.rows + [EchoedText.operation.row]).filter { row in
            served.contains(row.name) || Self.own.contains(String(row.path.split(separator: "/")[1]))
        }
        return try Console(
            configuration: configuration,
            rows: rows + [added?.row].compactMap(\.self),
            api: api,
            health: { [administration] in administration.health },
            live: live,
            access: access,
            audit: audit,
            clock: clock,
            metrics: metrics,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    func ask(
        _ method: String,
        _ url: String,
        token: String? = nil,
        body: String? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = .RAW(value: method)
        if let token { request.headers.add(name: "authorization", value: token) }
        if let body { request.body = .bytes(ByteBuffer(string: body)) }
        let response = try await HTTPClient.shared.execute(request, timeout: .minutes(5))
        let bytes = try await response.body.collect(upTo: 1 << 20)
        return Answer(status: response.status.code, fields: response.headers, body: String(buffer: bytes))
    }

    private func run<Result: Sendable>(
        _ listener: WebListener,
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await listener.run() }
            let result = try await body()
            group.cancelAll()
            // How the listener ends when it is cancelled is not what is tested.
            while await group.nextResult() != nil {}
            return result
        }
    }
}
