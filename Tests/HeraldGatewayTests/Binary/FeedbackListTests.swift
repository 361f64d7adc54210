import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import HeraldWire
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HeraldGateway

/// Both listeners on real ports, with TLS.
private final class ServedBinary: Sendable {
    let binary: BinaryGateway
    let ports: (binary: Int, feedback: Int)
    let trust: TestTrust

    init(
        _ fixture: Fixture,
        source: ScriptedFeedbackSource,
        configure: (inout FeedbackConfiguration) -> Void = { _ in }
    ) async throws {
        trust = fixture.trust
        var feedback = FeedbackConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        feedback.listener.handshakeTimeout = .patience
        feedback.listener.unknownAge = .patience
        (feedback.write, feedback.confirmation) = (.patience, .patience)
        configure(&feedback)
        var configuration = BinaryConfiguration(host: "127.0.0.1", port: 0, environment: .production)
        (configuration.shutdown, configuration.stopDrain) = (.patience, .patience)
        binary = BinaryGateway(
            binary: configuration,
            feedback: feedback,
            group: MultiThreadedEventLoopGroup.singleton,
            contexts: BinaryGateway.Contexts(
                binary: try fixture.context(newest: .tlsv12),
                feedback: try fixture.context(newest: .tlsv12)
            ),
            admission: fixture.admission,
            sink: fixture.post,
            feedbackSource: source,
            gateway: try fixture.gateway(),
            clock: fixture.trust.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        ports = try await binary.open()
    }

    /// Reads the feedback list to its end.
    /// - Throws: `NIOSSLError.uncleanShutdown` if the service did not end TLS.
    func read(pem: String) async throws -> [FeedbackTuple] {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates([
            try NIOSSLCertificate(bytes: PEMBundle.der(trust.folder.root.certificate), format: .der)
        ])
        tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)).map { .certificate($0) }
        tls.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(pem.utf8), format: .pem))
        let context = try NIOSSLContext(configuration: tls)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: ports.feedback) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound in
            var bytes = ByteBuffer()
            for try await var part in inbound { bytes.writeBuffer(&part) }
            var tuples: [FeedbackTuple] = []
            while let tuple = try bytes.readFeedbackTuple() { tuples.append(tuple) }
            #expect(bytes.readableBytes == 0)
            return tuples
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct FeedbackServiceTests {
    let fixture: Fixture
    let source = ScriptedFeedbackSource()
    let pem: String

    init() async throws {
        fixture = try await Fixture()
        pem = try await fixture.trust.provider("com.example.app").pem
    }

    private func records(_ count: Int, app: App = KnownApps.chat) throws -> [FeedbackRecord] {
        let number = try #require(fixture.apps.number(of: app))
        return (0..<count).map { index in
            FeedbackRecord(
                slot: Slot(device: DeviceNumber(UInt64(index)), app: number),
                generation: 1,
                time: WallTime(seconds: 1_700_000_000 + Int64(index))
            )
        }
    }

    private func serving(
        configure: (inout FeedbackConfiguration) -> Void = { _ in },
        _ act: (ServedBinary) async throws -> Void
    ) async throws {
        let served = try await ServedBinary(fixture, source: source, configure: configure)
        let running = Task { await served.binary.run() }
        try await act(served)
        served.binary.beginShutdown()
        // What readers have confirmed is forgotten by then.
        await running.value
        await served.binary.close()
        #expect(served.binary.connectionCount == 0)
    }

    @Test func `a long list comes in steps, oldest first, and is forgotten once it is read`() async throws {
        let all = try records(5000)
        source.add(all)
        try await serving { served in
            let tuples = try await served.read(pem: pem)
            #expect(tuples.count == 5000)
            #expect(tuples.map(\.time) == all.map { UInt32($0.time.seconds) })
            let contents = try #require(
                DeviceToken(bytes: tuples[7].token).flatMap { fixture.trustService.seal.open($0) }
            )
            #expect(contents.slot.device == DeviceNumber(7))
        }
        #expect(source.records == [])
    }

    @Test func `an app that was registered again is left out`() async throws {
        let all = try records(3)
        source.add(all)
        source.bringBack(all[1].slot)
        try await serving { served in
            let tuples = try await served.read(pem: pem)
            #expect(tuples.map(\.time) == [1_700_000_000, 1_700_000_002])
        }
    }

    @Test func `a token is reported under every key under which it may be held`() async throws {
        source.add(try records(1))
        let old = fixture.trustService.seal.seal(TokenContents(slot: try records(1)[0].slot, generation: 1))
        var ring = try fixture.trust.folder.tokenKeys()
        try ring.rotate(now: fixture.now)
        fixture.trustService.seal.replaceKeys(ring)
        try await serving { served in
            let tokens = try await served.read(pem: pem).map(\.token)
            #expect(tokens.count == 2)
            #expect(tokens.last == old.bytes)
        }
    }

    @Test func `a list that cannot be read differs from an empty one`() async throws {
        source.fail()
        try await serving { served in
            await #expect(throws: NIOSSLError.uncleanShutdown) { try await served.read(pem: pem) }
        }
    }

    @Test func `one connection gets at most the configured number of records`() async throws {
        source.add(try records(5))
        try await serving {
            $0.recordsPerConnection = 3
        } _: { served in
            let tuples = try await served.read(pem: pem)
            #expect(tuples.count == 3)
        }
        #expect(source.records.count == 2)
    }

    @Test func `a bundle's certificate speaks for its other kinds, and a kind's for itself`() async throws {
        let voip = App(topic: topic("com.example.app.voip"), environment: .production)
        let activity = App(topic: topic("com.example.app.push-type.liveactivity"), environment: .production)
        let sandbox = App(topic: topic("com.example.app"), environment: .sandbox)
        let other = App(topic: topic("com.example.other"), environment: .production)
        let production = try apps(of: pem, .production)
        #expect(production == [KnownApps.chat, voip, activity])
        let inSandbox = try apps(of: pem, .sandbox)
        #expect(inSandbox == [sandbox])
        let ofVoip = try apps(of: try await fixture.trust.provider("com.example.app.voip").pem, .production)
        #expect(ofVoip == [voip])
        let ofOther = try apps(of: try await fixture.trust.provider("com.example.other").pem, .production)
        #expect(ofOther == [other])
    }

    private func apps(of pem: String, _ environment: PushEnvironment) throws -> Set<App> {
        let certificate = try fixture.der(pem)
        let identity = try fixture.admission.identify(certificate: certificate, at: fixture.now).get()
        return Set(FeedbackList.apps(identity, environment, fixture.admission).compactMap { fixture.apps.app($0) })
    }
}
