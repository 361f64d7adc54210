import AsyncHTTPClient
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWeb
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import Synchronization

/// A service that answers operators from memory.
final class StandInAdministration: Administration {
    let problemsHeld = Mutex<[String]>([])
    let questions = Mutex<[JournalQuestion]>([])
    let offset = Mutex<Duration>(.zero)
    let fleet = Mutex<[String]>([])
    let reloads = Mutex(0)

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
        revoked: nil,
        connected: true
    )

    var problems: [String] { problemsHeld.withLock { $0 } }
    var warnings: [String] { [] }

    var status: ServiceStatus {
        var status = ServiceStatus(version: "1", pid: 7, started: WallTime(seconds: 0), now: WallTime(seconds: 100))
        status.environments = [.sandbox]
        status.devicesConnected = 2
        status.notificationsWaiting = 3
        status.drills = drills
        return status
    }

    func fullStatus() async -> ServiceStatus {
        var status = status
        status.journal = ServiceStatus.Journal(first: WallTime(seconds: 1), last: WallTime(seconds: 2))
        return status
    }

    static let channel = Topic("com.example.app").map { bundle in
        ChannelEntry(
            id: "dHN0LXNyY2gtY2hubA==",
            topic: bundle,
            environment: .sandbox,
            policy: 1,
            created: "2026-01-01T00:00:00.000Z",
            subscribers: 3,
            published: 2,
            delivered: 5,
            stored: true
        )
    }

    static let app = Topic("com.example.app").map { topic in
        AppEntry(
            AppUsage(
                record: AppRecord(
                    app: App(topic: topic, environment: .sandbox),
                    number: AppNumber(6),
                    origin: .device(DeviceNumber(5)),
                    created: WallTime(seconds: 0)
                ),
                devices: 0,
                ended: 1,
                channels: 0
            ),
            device: "phone",
            team: nil,
            owner: AppEntry.Owner(team: "TEAM000001", since: WallTime(seconds: 0), origin: "use")
        )
    }

    func forgetApp(_ topic: Topic, in environment: PushEnvironment?) async throws -> [AppEntry] {
        let apps = [Self.app].compactMap { $0 }.filter {
            $0.topic == topic && (environment == nil || $0.environment == environment)
        }
        guard !apps.isEmpty else { throw AdminError(.notFound, "no app has the name \(topic)") }
        return apps
    }

    func journal(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        questions.withLock { $0.append(question) }
        return JournalAnswer(Array(repeating: Self.entry, count: min(limit, 2)))
    }

    func reloadTrust() async throws { reloads.withLock { $0 += 1 } }

    let drillsHeld = Mutex<[DrillEntry]>([])
    let drillsAsked = Mutex<[DrillRequest]>([])

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

    var drills: [DrillEntry] { drillsHeld.withLock { $0 } }

    func allDrills() async -> [DrillEntry] { drills }

    func startDrill(_ request: DrillRequest) throws -> DrillEntry {
        drillsAsked.withLock { $0.append(request) }
        return Self.drill
    }

    func renewDrill(_ id: Int) throws -> DrillEntry { try stopDrill(id) }

    func stopDrill(_ id: Int) throws -> DrillEntry {
        guard id == 3 else { throw AdminError(.notFound, "no drill \(id) is active") }
        return Self.drill
    }

    func stopDrills() -> [DrillEntry] { drillsHeld.withLock { $0 } }

    var clock: ClockReading { ClockReading(now: WallTime(seconds: 100) + offset.withLock { $0 }, adjustable: true) }

    func advanceClock(by duration: Duration) throws -> ClockReading {
        offset.withLock { $0 += duration }
        return clock
    }

    func acceptClock() -> ClockReading {
        ClockReading(now: WallTime(seconds: 100), adjustable: true, jump: .seconds(7200))
    }
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
            try JSONDecoder().decode(type, from: Data(body.utf8))
        }
    }

    func withPort<Result: Sendable>(_ body: @Sendable (_ base: String) async throws -> Result) async throws -> Result {
        let (opened, open) = AsyncStream.makeStream(of: Int.self)
        return try await run(console().port { open.yield($0) }) {
            for await port in opened { return try await body("http://127.0.0.1:\(port)") }
            throw CancellationError()
        }
    }

    func withSocket<Result: Sendable>(_ body: @Sendable (_ base: String) async throws -> Result) async throws -> Result
    {
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        return try await run(console().socket { open.yield() }) {
            for await _ in opened {
                let host = socketPath.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                return try await body("http+unix://\(host)")
            }
            throw CancellationError()
        }
    }

    func console(port: Int = 0) -> Console {
        var configuration = ConsoleConfiguration(host: "127.0.0.1", port: port, socketPath: socketPath)
        configuration.mode = mode
        return Console(
            configuration: configuration,
            administration: administration,
            live: live,
            access: access,
            audit: audit,
            clock: clock,
            metrics: metrics,
            control: [ControlRoute("echo") { $0 }],
            journal: StandInJournal(),
            tallies: StandInTallies(),
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
