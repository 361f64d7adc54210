import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HeraldGateway

/// A gateway on a real port, with TLS.
final class Served: Sendable {
    let gateway: Gateway
    let port: Int
    let trust: TestTrust
    let trustService: TrustService

    init(_ fixture: Fixture) async throws {
        trust = fixture.trust
        trustService = fixture.trustService
        let server = try fixture.trust.folder.serverCertificate()
        let tls = ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(fixture.trust.folder.providerAuthority.certificate),
            clientCertificate: .optional,
            applicationProtocols: ["h2"]
        )
        var configuration = fixture.configuration
        // The client is a task: on a busy machine it comes to its turn long after the handshake.
        configuration.timeouts.preface = .patience
        configuration.http2.settingsTimeout = .patience
        configuration.http2.replyTimeout = .patience
        gateway = Gateway(
            configuration: configuration,
            group: MultiThreadedEventLoopGroup.singleton,
            context: try tls.makeContext(),
            admission: fixture.admission,
            sink: fixture.post,
            clock: fixture.trust.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        port = try await gateway.open()
    }

    /// Connects; `pem` is a client certificate with its key.
    func connect(protocols: [String] = ["h2"], name: String? = "localhost", pem: String? = nil) async throws -> Client {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates([
            try NIOSSLCertificate(bytes: PEMBundle.der(trust.folder.root.certificate), format: .der)
        ])
        tls.applicationProtocols = protocols
        if let pem {
            tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)).map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(pem.utf8), format: .pem))
        }
        if name == nil { tls.certificateVerification = .noHostnameVerification }
        let context = try NIOSSLContext(configuration: tls)
        let (bytes, arrival) = AsyncStream.makeStream(of: [UInt8].self)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: name)
                    try channel.pipeline.syncOperations.addHandlers([handler, Collector(arrival)])
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return Client(channel: channel, bytes: bytes)
    }
}

private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let arrival: AsyncStream<[UInt8]>.Continuation

    init(_ arrival: AsyncStream<[UInt8]>.Continuation) {
        self.arrival = arrival
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        arrival.yield(Array(unwrapInboundIn(data).readableBytesView))
    }

    func channelInactive(context: ChannelHandlerContext) {
        arrival.finish()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

/// The client's end of a real connection.
final class Client {
    let channel: any Channel
    let peer = RawPeer()
    private(set) var answers: [UInt32: Answer] = [:]
    private(set) var frames: [RawFrame] = []
    private var arrivals: AsyncStream<[UInt8]>.Iterator

    init(channel: any Channel, bytes: AsyncStream<[UInt8]>) {
        self.channel = channel
        arrivals = bytes.makeAsyncIterator()
    }

    func send(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Reads until something is there, or the connection is closed.
    ///
    /// - Returns: Whether it came.
    func read(until isThere: (Client) -> Bool) async -> Bool {
        while !isThere(self) {
            guard let bytes = await arrivals.next() else { return isThere(self) }
            let new = peer.frames(bytes)
            frames += new
            answers.merge(peer.answers(new)) { $1 }
        }
        return true
    }

    /// Reads to the end of the connection.
    func readToEnd() async {
        _ = await read { _ in false }
    }

    var goAway: String? {
        frames.last { $0.type == RawFrame.goAway }.map { String(decoding: $0.payload[8...], as: UTF8.self) }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct `a gateway` {
    let fixture: Fixture

    init() async throws {
        fixture = try await Fixture()
    }

    /// Serves while `act` runs, then stops.
    private func serving(_ act: (Served) async throws -> Void) async throws {
        let served = try await Served(fixture)
        let running = Task { await served.gateway.run() }
        defer { running.cancel() }
        try await act(served)
        running.cancel()
        await running.value
        #expect(served.gateway.connectionCount == 0)
    }

    @Test(arguments: [["h2"], []]) func `serves clients with ALPN and without`(_ protocols: [String]) async throws {
        try await serving { served in
            let client = try await served.connect(protocols: protocols)
            try await client.send(RawPeer.opening + RawPeer.request(1, try fixture.fields()))
            #expect(await client.read { $0.answers[1] != nil })
            #expect(client.answers[1]?.status == "200")
        }
    }

    @Test func `identifies a provider by its client certificate`() async throws {
        let pem = try await fixture.trust.provider("com.example.app").pem
        try await serving { served in
            let client = try await served.connect(pem: pem)
            let fields = RawPeer.fields(token: fixture.token(), [("apns-topic", nil)])
            try await client.send(RawPeer.opening + RawPeer.request(1, fields))
            #expect(await client.read { $0.answers[1] != nil })
            #expect(client.answers[1]?.status == "200")
        }
    }

    @Test func `uses the environment of the server name`() async throws {
        let pem = try await fixture.trust.provider("com.example.app", environments: [.production]).pem
        try await serving { served in
            let client = try await served.connect(name: "sandbox.localhost", pem: pem)
            // The gateway may have closed the connection already.
            try? await client.send(RawPeer.opening)
            await client.readToEnd()
            #expect(client.goAway == #"{"reason":"BadCertificateEnvironment"}"#)
        }
    }

    @Test func `ends the connection of a certificate that was revoked meanwhile`() async throws {
        let issued = try await fixture.trust.provider("com.example.app")
        try await serving { served in
            let client = try await served.connect(pem: issued.pem)
            try await client.send(RawPeer.opening + RawPeer.request(1, RawPeer.fields(token: fixture.token())))
            #expect(await client.read { $0.answers[1] != nil })
            _ = try await fixture.trust.folder.providers.revoke(issued.credential.id, now: fixture.now)
            #expect(await served.trustService.reload().revocations == [.provider])
            served.gateway.reviewCertificates()
            await client.readToEnd()
            #expect(client.goAway == #"{"reason":"BadCertificate"}"#)
        }
    }

    @Test func `answers a thousand requests at once, their completions from other threads`() async throws {
        fixture.post.settle { envelope in
            MultiThreadedEventLoopGroup.singleton.next().execute { envelope.completion?.settle(.accepted) }
        }
        try await serving { served in
            let client = try await served.connect()
            let fields = try fixture.fields()
            var burst = RawPeer.opening
            for index in UInt32(0)..<1000 { burst += RawPeer.request(index * 2 + 1, fields) }
            try await client.send(burst)
            #expect(await client.read { $0.answers.count == 1000 })
            #expect(client.answers.values.allSatisfy { $0.status == "200" })
        }
    }

    @Test func `stops gracefully`() async throws {
        let served = try await Served(fixture)
        async let end: Void = served.gateway.run()
        let client = try await served.connect()
        try await client.send(RawPeer.opening + RawPeer.request(1, try fixture.fields()))
        #expect(await client.read { $0.answers[1] != nil })
        served.gateway.beginShutdown()
        await client.readToEnd()
        await end
        #expect(client.goAway == #"{"reason":"Shutdown"}"#)
        #expect(served.gateway.connectionCount == 0)
        await #expect(throws: (any Error).self) { try await served.connect() }
    }

    @Test func `names the port that is in use, and what to do`() async throws {
        try await serving { served in
            fixture.configuration.listener.port = served.port
            await #expect(throws: ListenerError.self) { try await Served(fixture) }
        }
    }
}
