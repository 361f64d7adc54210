import Crypto
import Foundation
import HeraldGateway
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Logging
import NIOPosix
import Synchronization

@testable import HeraldProvider

/// A gateway on a real port, with TLS, that keeps a ledger of what it accepted.
final class TestService: Sendable {
    static let topic = Topic("com.example.app")

    let trust: TestTrust
    let key: TestProviderKey
    let ledger = Ledger()
    let drills: DrillService
    let channels: ChannelScene
    let port: Int
    private let trustService: TrustService
    private let gateway: Gateway

    private init(streams: Int?) async throws {
        trust = try await TestTrust()
        channels = ChannelScene(clock: trust.clock)
        key = try await trust.providerKey("com.example.app")
        trustService = try await trust.service()
        let server = try trust.folder.serverCertificate()
        let tls = ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(trust.folder.providerAuthority.certificate),
            clientCertificate: .optional,
            applicationProtocols: ["h2"]
        )
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        drills = DrillService(clock: trust.clock, logger: quiet)
        var configuration = GatewayConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        configuration.listener.handshakeTimeout = .patience
        configuration.listener.unknownAge = .patience
        configuration.timeouts.preface = .patience
        configuration.timeouts.write = .patience
        configuration.http2.bodyTimeout = .patience
        configuration.http2.replyTimeout = .patience
        configuration.http2.settingsTimeout = .patience
        if let streams { configuration.http2.concurrentStreams = streams }
        gateway = Gateway(
            configuration: configuration,
            group: MultiThreadedEventLoopGroup.singleton,
            context: try tls.makeContext(),
            admission: Admission(trust: trustService, apps: OneApp()),
            sink: ledger,
            channels: channels.service,
            // The clients' tokens have the machine's time.
            clock: ServiceClock(),
            logger: quiet,
            drills: drills
        )
        port = try await gateway.open()
    }

    /// Serves while `body` runs.
    static func run(streams: Int? = nil, _ body: (TestService) async throws -> Void) async throws {
        let service = try await TestService(streams: streams)
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { await service.gateway.run() }
            group.addTask { await service.drills.run() }
            group.addTask { await service.channels.service.run() }
            do {
                try await body(service)
            } catch {
                group.cancelAll()
                throw error
            }
            group.cancelAll()
        }
    }

    /// A client's configuration, by key.
    var configuration: ProviderConfiguration {
        var configuration = ProviderConfiguration(
            host: "localhost",
            port: port,
            credential: .key(pem: Array(key.secret.pemRepresentation.utf8), id: key.id, team: key.team),
            authorities: FileManager.default.contents(atPath: trust.path + "/ca.pem").map { Array($0) }
        )
        // A test of these limits sets its own.
        configuration.timeout = .patience
        configuration.totalTimeout = .patience
        configuration.connections.pingTimeout = .patience
        return configuration
    }

    /// A notification to a device of its own.
    func request(_ number: Int) -> PushRequest {
        let slot = Slot(device: DeviceNumber(UInt64(number) + 1), app: AppNumber(1))
        let token = PushToken(trustService.seal.seal(TokenContents(slot: slot, generation: 1)))
        return PushRequest(token: token, topic: Self.topic, payload: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    }

    func start(_ kind: Drill.Kind, share: Double = 1, for duration: Duration = .seconds(600)) {
        _ = drills.start(Drill(kind: kind, share: share, duration: duration, seed: 1))
    }
}

private struct OneApp: AppDirectory {
    private let app = TestService.topic.map { App(topic: $0, environment: .production) }

    func app(_ number: AppNumber) -> App? { number == AppNumber(1) ? app : nil }

    func number(of other: App) -> AppNumber? { other == app ? AppNumber(1) : nil }

    func isRegistered(_ app: App) -> Bool { number(of: app) != nil }

    func team(thatBrought app: App) -> String? { nil }
}

/// A post office that accepts everything, and counts how often it did.
final class Ledger: NotificationSink {
    let longestStorage = Duration.seconds(30 * 86_400)
    let isOverloaded = false
    private let counts = Mutex([NotificationID: Int]())

    var accepted: [NotificationID: Int] { counts.withLock { $0 } }

    func post(_ envelope: Envelope) -> PostDecision {
        counts.withLock { $0[envelope.notification.id, default: 0] += 1 }
        return .accepted
    }

    func discard(_ envelope: Envelope, as state: JournalState) -> PostDecision { .accepted }

    func refuse(at now: WallTime, _ line: () -> JournalEvent) {
        // There is no journal.
    }

    func record(_ state: JournalState, about notification: HeraldModel.Notification) {
        // There is no journal.
    }
}
