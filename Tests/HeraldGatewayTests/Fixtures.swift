import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Logging
import NIOCore
import NIOEmbedded
import Synchronization

@testable import HeraldGateway
@testable import HeraldListener

/// A post office for tests: returns set decisions and keeps all envelopes.
final class ScriptedPostOffice: NotificationSink {
    private struct State {
        var isOverloaded = false
        var envelopes: [Envelope] = []
        var discarded: [JournalState] = []
        var noted: [JournalState] = []
        var refused: [JournalEvent] = []
        var decision = PostDecision.accepted
        var settles: (@Sendable (Envelope) -> Void)?
    }

    private let state = Mutex(State())
    let longestStorage = Duration.seconds(30 * 86_400)

    var isOverloaded: Bool {
        get { state.withLock { $0.isOverloaded } }
        set { state.withLock { $0.isOverloaded = newValue } }
    }

    var envelopes: [Envelope] { state.withLock { $0.envelopes } }
    var discarded: [JournalState] { state.withLock { $0.discarded } }

    var noted: [JournalState] { state.withLock { $0.noted } }

    /// The lines about refused requests.
    var refused: [JournalEvent] { state.withLock { $0.refused } }

    func refuse(at now: WallTime, _ line: () -> JournalEvent) {
        let line = line()
        state.withLock { $0.refused.append(line) }
    }

    func decide(_ decision: PostDecision) {
        state.withLock { $0.decision = decision }
    }

    /// Decides to wait, and has `settle` called for each envelope.
    func settle(_ settle: @escaping @Sendable (Envelope) -> Void) {
        state.withLock { state in
            state.decision = .pending
            state.settles = settle
        }
    }

    func post(_ envelope: Envelope) -> PostDecision {
        let (decision, settle) = state.withLock { state in
            state.envelopes.append(envelope)
            return (state.decision, state.settles)
        }
        settle?(envelope)
        return decision
    }

    func record(_ journalState: JournalState, about notification: Notification) {
        state.withLock { $0.noted.append(journalState) }
    }

    func discard(_ envelope: Envelope, as journalState: JournalState) -> PostDecision {
        state.withLock { $0.discarded.append(journalState) }
        return post(envelope)
    }
}

/// Apps that devices have registered, or else a team has made channels of.
struct KnownApps: AppDirectory {
    static let chat = App(topic: topic("com.example.app"), environment: .production)
    let apps: [App] = [
        KnownApps.chat,
        App(topic: topic("com.example.other"), environment: .production),
        App(topic: topic("com.example.app"), environment: .sandbox),
        App(topic: topic("com.example.app.voip"), environment: .production),
        App(topic: topic("com.example.app.push-type.liveactivity"), environment: .production),
    ]

    /// Apps that another node has made.
    let late = LateApps()
    /// The teams of the apps that no device has registered.
    var teams: [App: String] = [:]

    func isRegistered(_ app: App) -> Bool { apps.contains(app) && teams[app] == nil }

    func team(thatBrought app: App) -> String? { teams[app] }

    func app(_ number: AppNumber) -> App? {
        let index = Int(number.value) - 1
        return apps.indices.contains(index) ? apps[index] : late.all[number]
    }

    func number(of app: App) -> AppNumber? {
        apps.firstIndex(of: app).map { AppNumber(UInt32($0) + 1) } ?? late.all.first { $0.value == app }?.key
    }
}

/// The state of a cluster in which another node has made apps, which this node learns when it catches up.
final class LateApps: SharedState {
    private struct State {
        var known: [AppNumber: App] = [:]
        var unknown: [AppNumber: App] = [:]
        var fails = false
        var behind: Set<SharedPart> = []
        var trust: @Sendable () -> Void = {}
    }

    private struct Unreachable: Error {}

    private let state = Mutex(State())

    var all: [AppNumber: App] { state.withLock { $0.known } }

    /// Another node makes an app.
    func make(_ app: App, _ number: AppNumber) { state.withLock { $0.unknown[number] = app } }

    func fail() { state.withLock { $0.fails = true } }

    /// Another node changes the trust; `learn` brings it here.
    func changeTrust(_ learn: @escaping @Sendable () -> Void) { state.withLock { $0.trust = learn } }

    /// This node has stood still.
    func standStill(_ parts: SharedPart...) { state.withLock { $0.behind = Set(parts) } }

    func isBehind(_ part: SharedPart) -> Bool { state.withLock { $0.behind.contains(part) } }

    func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let (fails, learn) = state.withLock { state in
            if !state.fails, part != .trust { state.known.merge(state.unknown) { $1 } }
            return (state.fails, state.trust)
        }
        if !fails, part == .trust { learn() }
        done(fails ? .failure(Unreachable()) : .success(()))
    }
}

func topic(_ name: String) -> Topic {
    guard let topic = Topic(name) else { fatalError("no topic: \(name)") }
    return topic
}

/// A gateway without sockets: trust as a service has it, known apps, a scripted post office.
final class Fixture {
    let trust: TestTrust
    let trustService: TrustService
    var apps = KnownApps()
    let post = ScriptedPostOffice()
    let key: TestProviderKey
    /// With the channels that a test makes.
    var channels: ChannelService?
    /// With the other nodes of a test.
    var confirmations: RefusalConfirmations?
    let drills: DrillService
    var senders = SenderNames()
    let catcher: CatchService
    var configuration = {
        var configuration = GatewayConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        // A busy machine takes long for handshakes and first requests; the time limits have their own tests.
        configuration.listener.handshakeTimeout = .patience
        configuration.listener.unknownAge = .patience
        return configuration
    }()

    init() async throws {
        trust = try await TestTrust()
        key = try await trust.providerKey("com.example.app", "com.example.other")
        trustService = try await trust.service()
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        drills = DrillService(clock: trust.clock, logger: logger)
        catcher = CatchService(clock: trust.clock, logger: logger)
    }

    var now: WallTime { trust.now }
    var admission: Admission { Admission(trust: trustService, apps: apps, senders: senders) }

    var service: ProviderService {
        ProviderService(
            configuration: configuration,
            admission: admission,
            sink: post,
            channels: channels,
            confirmations: confirmations,
            clock: trust.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            drills: drills,
            catcher: catcher,
            rules: ReloadableRules(configuration.rules),
            bodies: BodyMemory(limit: configuration.unfinishedBodyBytes)
        )
    }

    /// The token of a registration of an app on device 7.
    func token(_ app: App = KnownApps.chat, generation: UInt32 = 1) -> String {
        let number = apps.number(of: app) ?? AppNumber(999)
        let slot = Slot(device: DeviceNumber(7), app: number)
        return trustService.seal.seal(TokenContents(slot: slot, generation: generation)).hex
    }

    func bearer(_ key: TestProviderKey? = nil, issued: Duration = .zero) throws -> String {
        "bearer " + (try (key ?? self.key).token(issued: now + issued))
    }

    /// The fields of a request that is accepted, with some changed, added, or (nil) left out.
    func fields(_ changes: [(String, String?)] = [], app: App = KnownApps.chat) throws -> [(String, String)] {
        RawPeer.fields(token: token(app), [("authorization", try bearer())] + changes)
    }
}

/// A connection on an embedded channel, and a client of bare frames.
final class Connected {
    let fixture: Fixture
    let channel: EmbeddedChannel
    let peer = RawPeer()
    let loop: ProviderLoop<ProviderConnection>
    private var nextStream: UInt32 = 1
    private(set) var connection: ProviderConnection?

    init(
        _ fixture: Fixture,
        certificate: [UInt8]? = nil,
        serverName: String? = nil,
        afterStop: Bool = false
    ) throws {
        self.fixture = fixture
        channel = EmbeddedChannel()
        loop = ProviderLoop<ProviderConnection>(on: channel.eventLoop)
        if afterStop {
            loop.stop()
            channel.embeddedEventLoop.run()
        }
        let connection = try ProviderConnection(
            service: fixture.service,
            loop: loop,
            peer: HandshakePeer(certificate: certificate, serverName: serverName, negotiatedProtocol: "h2"),
            now: channel.eventLoop.now
        )
        self.connection = connection
        // As behind a listener: the handshake is over when the handler comes.
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(connection)
    }

    /// Lets go of the connection, to see whether anybody else holds it.
    func forget() {
        connection = nil
    }

    func receive(_ bytes: [UInt8]) throws {
        try channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    func sent() throws -> [RawFrame] {
        channel.embeddedEventLoop.run()
        var frames: [RawFrame] = []
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
            frames += peer.frames(buffer.readableBytesView)
        }
        return frames
    }

    func open() throws {
        try receive(RawPeer.opening)
        _ = try sent()
        try receive(RawPeer.settingsAcknowledgement)
    }

    /// Sends one request and takes its answer.
    func ask(_ fields: [(String, String)], body: [UInt8] = Array(#"{"aps":{}}"#.utf8)) throws -> Answer? {
        let stream = nextStream
        nextStream += 2
        try receive(RawPeer.request(stream, fields, body: body))
        return peer.answers(try sent())[stream]
    }

    var isOpen: Bool { channel.isActive }

    func pass(_ time: TimeAmount) {
        channel.embeddedEventLoop.advanceTime(by: time)
    }
}
