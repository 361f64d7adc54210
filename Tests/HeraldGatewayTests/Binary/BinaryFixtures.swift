import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import HeraldWire
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import NIOSSL
import Synchronization

@testable import HeraldGateway
@testable import HeraldListener

/// A registry of invalid tokens for tests.
final class ScriptedFeedbackSource: FeedbackSource {
    private struct State {
        var records: [FeedbackRecord] = []
        var back: Set<Slot> = []
        var fails = false
    }

    private let state = Mutex(State())

    var records: [FeedbackRecord] { state.withLock { $0.records } }

    func add(_ records: [FeedbackRecord]) {
        state.withLock { $0.records += records }
    }

    func bringBack(_ slot: Slot) {
        state.withLock { _ = $0.back.insert(slot) }
    }

    func fail() {
        state.withLock { $0.fails = true }
    }

    func catchUp() async throws {}

    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        try state.withLock { state in
            if state.fails { throw CancellationError() }
            return Array(state.records.filter { $0.slot.app == app }.prefix(limit))
        }
    }

    func clearFeedback(_ records: [FeedbackRecord]) async throws {
        let gone = Set(records)
        state.withLock { $0.records.removeAll { gone.contains($0) } }
    }

    func isBack(_ record: FeedbackRecord) -> Bool {
        state.withLock { $0.back.contains(record.slot) }
    }
}

extension Fixture {
    /// The certificate of a PEM file that Herald made, DER.
    func der(_ pem: String) throws -> [UInt8] {
        try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))[0].toDERBytes()
    }

    func gateway() throws -> Gateway {
        Gateway(
            configuration: configuration,
            group: MultiThreadedEventLoopGroup.singleton,
            context: try context(newest: nil),
            admission: admission,
            sink: post,
            clock: trust.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    func context(newest: TLSVersion?) throws -> NIOSSLContext {
        let server = try trust.folder.serverCertificate()
        return try ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(trust.folder.providerAuthority.certificate),
            clientCertificate: .optional,
            applicationProtocols: ["h2"],
            newestVersion: newest
        ).makeContext()
    }

    func binaryService(
        _ binary: BinaryConfiguration,
        _ feedback: FeedbackConfiguration,
        _ source: ScriptedFeedbackSource
    ) throws -> BinaryService {
        BinaryService(
            binary: binary,
            feedback: feedback,
            admission: admission,
            sink: post,
            feedbackSource: source,
            confirmations: confirmations,
            gateway: try gateway(),
            clock: trust.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// A framed notification for the chat app.
    func notification(
        _ identifier: UInt32?,
        form: BinaryNotification.Form = .framed,
        expiration: UInt32? = nil,
        priority: Priority? = nil,
        token: String? = nil,
        payload: String = #"{"aps":{"alert":"hi"}}"#
    ) throws -> [UInt8] {
        guard let token = PushToken(token ?? self.token()) else { fatalError("no token") }
        var buffer = ByteBuffer()
        buffer.writeNotification(
            BinaryNotification(
                form: form,
                identifier: identifier,
                expiration: expiration,
                priority: priority,
                token: token,
                payload: Array(payload.utf8)
            )
        )
        return Array(buffer.readableBytesView)
    }
}

/// A connection of the binary interface on an embedded channel.
final class BinaryBench {
    let fixture: Fixture
    let channel = EmbeddedChannel()
    let loop: ProviderLoop<BinaryConnection>
    let connection: BinaryConnection
    private let closes = CloseCounter()

    init(
        _ fixture: Fixture,
        certificate: [UInt8]?,
        serverName: String? = nil,
        configure: (inout BinaryConfiguration) -> Void = { _ in }
    ) throws {
        self.fixture = fixture
        var binary = BinaryConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        configure(&binary)
        loop = ProviderLoop<BinaryConnection>(on: channel.eventLoop)
        let feedback = FeedbackConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        connection = BinaryConnection(
            service: try fixture.binaryService(binary, feedback, ScriptedFeedbackSource()),
            loop: loop,
            peer: HandshakePeer(certificate: certificate, serverName: serverName, negotiatedProtocol: nil),
            now: channel.eventLoop.now
        )
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers([closes, connection])
    }

    func receive(_ bytes: [UInt8]) throws {
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        channel.embeddedEventLoop.run()
    }

    /// The error response; fails if anything else was written.
    func answer() throws -> BinaryErrorResponse? {
        channel.embeddedEventLoop.run()
        guard var buffer = try channel.readOutbound(as: ByteBuffer.self) else { return nil }
        defer { precondition(buffer.readableBytes == 0, "more than an error response was written") }
        return buffer.readErrorResponse()
    }

    /// The service stops.
    func stop() {
        loop.stop()
        channel.embeddedEventLoop.run()
    }

    func pass(_ time: TimeAmount) {
        channel.embeddedEventLoop.advanceTime(by: time)
    }

    /// Whether the service has closed its side.
    var hasEnded: Bool { closes.hasClosedOutput }
    var isOpen: Bool { channel.isActive }
    /// The identifiers of what the post office has, in order.
    var posted: [String] { fixture.post.envelopes.map { String("\($0.notification.id)".suffix(8)) } }
}

/// Notes that the output was closed, which an embedded channel does not know.
private final class CloseCounter: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private(set) var hasClosedOutput = false

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .output = mode else { return context.close(mode: mode, promise: promise) }
        hasClosedOutput = true
        promise?.succeed()
    }
}
