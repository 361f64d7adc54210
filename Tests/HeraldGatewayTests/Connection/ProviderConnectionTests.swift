import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldGateway
@testable import HeraldListener

@Suite
struct `a provider's connection` {
    let fixture: Fixture

    init() async throws {
        fixture = try await Fixture()
    }

    private func reason(_ answer: Answer?) -> String {
        guard let answer else { return "no answer" }
        guard answer.status != "200" else { return "200" }
        return answer.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? answer.body
    }

    private func goAway(_ frames: [RawFrame]) -> String? {
        frames.last { $0.type == RawFrame.goAway }.map { String(decoding: $0.payload[8...], as: UTF8.self) }
    }

    private func certificate(_ topics: String..., marks: [UInt] = [1, 2]) throws -> [UInt8] {
        var certificate = TestCertificate.provider(topics[0])
        certificate.extensions = marks.map { TestCertificate.mark($0) }
        return try certificate.der(fixture.trust, .provider)
    }

    // Who it is.

    @Test func `by token is allowed one stream until its first valid token, then a thousand`() throws {
        let connected = try Connected(fixture)
        try connected.receive(RawPeer.opening)
        #expect(Exchange.settings(try connected.sent().first { $0.type == RawFrame.settings })[3] == 1)
        try connected.receive(RawPeer.settingsAcknowledgement)
        try connected.receive(RawPeer.request(1, RawPeer.fields()))
        #expect(!(try connected.sent().contains { $0.type == RawFrame.settings }))
        try connected.receive(RawPeer.request(3, try fixture.fields()))
        let settings = try connected.sent().filter { $0.type == RawFrame.settings }
        #expect(settings.map(Exchange.settings) == [[3: 1000]])
    }

    @Test func `by certificate is allowed a thousand streams at once`() throws {
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.receive(RawPeer.opening)
        #expect(Exchange.settings(try connected.sent().first { $0.type == RawFrame.settings })[3] == 1000)
    }

    @Test func `by certificate needs neither token nor topic, and ignores an authorization`() throws {
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        let fields = RawPeer.fields(token: fixture.token(), [("apns-topic", nil), ("authorization", "bearer x")])
        #expect(reason(try connected.ask(fields)) == "200")
        #expect(reason(try connected.ask(fields + [("apns-topic", "com.example.other")])) == "TopicDisallowed")
    }

    @Test func `by certificate with several topics must name one`() async throws {
        let issued = try await fixture.trust.provider("com.example.app", "com.example.other")
        let der = try #require(try PEMBundle(pem: Array(issued.pem.utf8), path: "").certificates.first)
        let connected = try Connected(fixture, certificate: PEMBundle.der(der))
        try connected.open()
        #expect(
            reason(try connected.ask(RawPeer.fields(token: fixture.token(), [("apns-topic", nil)]))) == "MissingTopic"
        )
        #expect(reason(try connected.ask(RawPeer.fields(token: fixture.token()))) == "200")
    }

    @Test func `by certificate may not send what needs a token`() throws {
        let name = "com.example.app.push-type.liveactivity"
        let connected = try Connected(fixture, certificate: try certificate(name))
        try connected.open()
        let token = fixture.token(App(topic: topic(name), environment: .production))
        let fields = RawPeer.fields(token: token, [("apns-topic", name), ("apns-push-type", "liveactivity")])
        #expect(reason(try connected.ask(fields)) == "TopicDisallowed")
    }

    @Test func `with a certificate for the other environment gets the reason after its SETTINGS`() throws {
        let der = try certificate("com.example.app", marks: [1])
        let connected = try Connected(fixture, certificate: der, serverName: "api.push.apple.com")
        #expect(goAway(try connected.sent()) == nil)
        try connected.receive(RawPeer.opening + RawPeer.request(1))
        let frames = try connected.sent()
        #expect(goAway(frames) == #"{"reason":"BadCertificateEnvironment"}"#)
        #expect(frames.last { $0.type == RawFrame.goAway }?.payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 0])
        #expect(!connected.isOpen)
        #expect(fixture.post.envelopes.isEmpty)
    }

    @Test func `without a server name uses the environment of each request's authority`() throws {
        let der = try certificate("com.example.app", marks: [1])
        let connected = try Connected(fixture, certificate: der)
        try connected.open()
        #expect(reason(try connected.ask(RawPeer.fields(token: fixture.token()))) == "BadCertificateEnvironment")
        let token = fixture.token(App(topic: topic("com.example.app"), environment: .sandbox))
        let fields = RawPeer.fields(
            token: token,
            [(":authority", nil), ("host", "api.development.push.apple.com:2197")]
        )
        #expect(reason(try connected.ask(fields)) == "200")
    }

    @Test func `with a server name uses its environment for all requests`() throws {
        let connected = try Connected(fixture, serverName: "api.sandbox.push.apple.com")
        try connected.open()
        #expect(reason(try connected.ask(try fixture.fields())) == "BadDeviceToken")
        let app = App(topic: topic("com.example.app"), environment: .sandbox)
        #expect(reason(try connected.ask(try fixture.fields(app: app))) == "200")
    }

    @Test func `with an invalid certificate gets the reason, and a token does not help`() async throws {
        let stranger = try await Fixture()
        let der = try TestCertificate.provider("com.example.app").der(stranger.trust, .provider)
        let connected = try Connected(fixture, certificate: der)
        try connected.receive(RawPeer.opening + RawPeer.request(1, try fixture.fields()))
        #expect(goAway(try connected.sent()) == #"{"reason":"BadCertificate"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `ends when its certificate expires`() throws {
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        #expect(reason(try connected.ask(RawPeer.fields(token: fixture.token()))) == "200")
        fixture.trust.clock.advance(by: .seconds(2 * 86_400))
        connected.pass(.seconds(2))
        #expect(goAway(try connected.sent()) == #"{"reason":"BadCertificate"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `with a key of the other environment, of too few topics, or revoked, is refused`() async throws {
        let sandbox = try await fixture.trust.providerKey("com.example.app", environments: [.sandbox])
        let narrow = try await fixture.trust.providerKey("com.example.else")
        fixture.trustService.providerTokens.replaceCredentials(try book())
        let cases = [(sandbox, "BadEnvironmentKeyInToken"), (narrow, "TopicDisallowed")]
        for (key, expected) in cases {
            let connected = try Connected(fixture)
            try connected.open()
            let fields = RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(key))])
            #expect(reason(try connected.ask(fields)) == expected)
        }
    }

    private func book() throws -> CredentialTable {
        CredentialTable(keys: try fixture.trust.folder.providerKeys(), claims: TopicClaims(version: 1, []))
    }

    @Test func `refuses the next request when its key is gone`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        #expect(reason(try connected.ask(try fixture.fields())) == "200")
        let empty = CredentialTable(keys: [], claims: TopicClaims(version: .min, []))
        fixture.trustService.providerTokens.replaceCredentials(empty)
        #expect(reason(try connected.ask(try fixture.fields())) == "InvalidProviderToken")
    }

    @Test func `refuses the next request when its token is too old`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let fields = try fixture.fields()
        #expect(reason(try connected.ask(fields)) == "200")
        fixture.trust.clock.advance(by: .seconds(3601))
        #expect(reason(try connected.ask(fields)) == "ExpiredProviderToken")
        #expect(reason(try connected.ask(try fixture.fields())) == "200")
    }

    @Test func `may not change its token too often, nor its team`() async throws {
        let other = try await fixture.trust.providerKey("com.example.app", team: "TEAM000002")
        let connected = try Connected(fixture)
        try connected.open()
        func ask(_ issued: Int64) throws -> String {
            let authorization = try fixture.bearer(issued: .seconds(issued))
            return reason(try connected.ask(RawPeer.fields(token: fixture.token(), [("authorization", authorization)])))
        }
        #expect(try ask(0) == "200")
        #expect(try ask(-1) == "200")
        #expect(try ask(-2) == "TooManyProviderTokenUpdates")
        fixture.trustService.providerTokens.replaceCredentials(try book())
        let fields = RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(other))])
        #expect(reason(try connected.ask(fields)) == "InvalidProviderToken")
    }

    @Test func `that presents one invalid token after another is cut off`() throws {
        fixture.configuration.refusedTokens = 10
        let connected = try Connected(fixture)
        try connected.open()
        var count = 0
        while connected.isOpen, count < 100 {
            _ = try connected.ask(RawPeer.fields([("authorization", "bearer \(count)")]))
            count += 1
        }
        #expect(count == 11)
    }

    @Test func `that presents one valid token after another is cut off, although each is only refused for its age`()
        throws
    {
        fixture.configuration.refusedTokens = 10
        let connected = try Connected(fixture)
        try connected.open()
        var count: Int64 = 0
        while connected.isOpen, count < 100 {
            let authorization = try fixture.bearer(issued: .seconds(-count))
            _ = try connected.ask(RawPeer.fields(token: fixture.token(), [("authorization", authorization)]))
            count += 1
        }
        // The first token, its free change, and eleven that are refused.
        #expect(count == 13)
    }

    @Test func `that presents one valid token of the other environment after another is cut off`() async throws {
        fixture.configuration.refusedTokens = 10
        let key = try await fixture.trust.providerKey("com.example.app", environments: [.sandbox])
        _ = await fixture.trustService.reload()
        let connected = try Connected(fixture)
        try connected.open()
        func ask(_ authorization: String) throws -> String {
            reason(try connected.ask(RawPeer.fields(token: fixture.token(), [("authorization", authorization)])))
        }
        let first = try fixture.bearer(key)
        for _ in 0..<20 { #expect(try ask(first) == "BadEnvironmentKeyInToken") }
        #expect(connected.isOpen, "one token is counted once")
        // Each signature is another token.
        for _ in 1..<10 { #expect(try ask(try fixture.bearer(key)) == "BadEnvironmentKeyInToken") }
        #expect(connected.isOpen)
        _ = try ask(try fixture.bearer(key))
        #expect(!connected.isOpen)
    }

    // The owner of a topic.

    /// Keys of two teams, none of which names a topic; no team owns the app's.
    private func teams() async throws -> [TestProviderKey] {
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        let teams = ["TEAM00000A", "TEAM00000B"]
        let keys = [
            try await fixture.trust.providerKey(team: teams[0]), try await fixture.trust.providerKey(team: teams[1]),
        ]
        _ = await fixture.trustService.reload()
        return keys
    }

    private func push(_ key: TestProviderKey) throws -> Answer? {
        let connected = try Connected(fixture)
        try connected.open()
        return try connected.ask(RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(key))]))
    }

    @Test func `of two teams that use a topic first, one is refused before anything is posted`() async throws {
        let keys = try await teams()
        #expect(try push(keys[0]) == nil, "the answer waits for the claim")
        #expect(fixture.post.envelopes.count == 1)
        #expect(reason(try push(keys[1])) == "TopicDisallowed")
        #expect(fixture.post.envelopes.count == 1)
    }

    @Test func `by certificate claims the topic for the team in its subject, and needs no claim`() async throws {
        let keys = try await teams()
        let der = try TestCertificate.provider("com.example.app", team: "TEAM00000C").der(fixture.trust, .provider)
        func push() throws -> Answer? {
            let connected = try Connected(fixture, certificate: der)
            try connected.open()
            return try connected.ask(RawPeer.fields(token: fixture.token()))
        }
        #expect(try push() == nil, "the answer waits for the claim")
        #expect(reason(try self.push(keys[0])) == "TopicDisallowed")
        _ = try await fixture.trust.folder.topics.claim(
            [KnownApps.chat.topic],
            for: keys[0].team,
            takesOver: false,
            now: fixture.now
        )
        _ = await fixture.trustService.reload()
        #expect(reason(try push()) == "200", "its authority named the topic")
    }

    @Test func `a refused request claims nothing`() async throws {
        let keys = try await teams()
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        #expect(reason(try push(keys[0])) == "Unregistered")
        fixture.post.settle { $0.completion?.settle(.refused(.serviceUnavailable)) }
        #expect(reason(try push(keys[0])) == "ServiceUnavailable")
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        #expect(reason(try push(keys[1])) == "Unregistered", "and not TopicDisallowed")
    }

    @Test func `a push whose claim is undecided is answered 503, and those after it are not posted`() async throws {
        let keys = try await teams()
        let connected = try Connected(fixture)
        try connected.open()
        let fields = RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(keys[0]))])
        #expect(try connected.ask(fields) == nil, "the answer waits for the claim")
        for _ in 1...2 { fixture.trustService.firstUses.expireClaims() }
        #expect(connected.peer.answers(try connected.sent())[1].map { reason($0) } == "ServiceUnavailable")
        for key in keys { #expect(reason(try push(key)) == "ServiceUnavailable") }
        #expect(fixture.post.envelopes.count == 1)
    }

    @Test func `that repeats one invalid token is refused each time`() throws {
        fixture.configuration.refusedTokens = 10
        let connected = try Connected(fixture)
        try connected.open()
        for _ in 0..<100 {
            #expect(
                reason(try connected.ask(RawPeer.fields([("authorization", "bearer x")]))) == "InvalidProviderToken"
            )
        }
    }

    // Receipts.

    @Test func `answers when the completion comes, from any thread, a batch in one write`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        var burst: [UInt8] = []
        for stream in stride(from: UInt32(1), to: 21, by: 2) {
            burst += RawPeer.request(stream, RawPeer.fields(token: fixture.token()))
        }
        try connected.receive(burst)
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        for (index, envelope) in fixture.post.envelopes.enumerated() {
            envelope.completion?.settle(index == 3 ? .refused(.serviceUnavailable) : .accepted)
        }
        connected.channel.embeddedEventLoop.run()
        let written = try #require(try connected.channel.readOutbound(as: ByteBuffer.self))
        #expect(try connected.channel.readOutbound(as: ByteBuffer.self) == nil)
        let answers = connected.peer.answers(connected.peer.frames(written.readableBytesView))
        #expect(answers.count == 10)
        #expect(answers.values.count { $0.status == "200" } == 9)
        #expect(answers[7]?.status == "503")
    }

    @Test func `ignores a completion after the end of the stream or connection`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        try connected.receive(RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes)
        try connected.receive(RawPeer.request(3, RawPeer.fields(token: fixture.token())))
        fixture.post.envelopes[0].completion?.settle(.accepted)
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        fixture.post.envelopes[0].completion?.settle(.accepted)
        _ = try connected.channel.finish(acceptAlreadyClosed: true)
        fixture.post.envelopes[1].completion?.settle(.accepted)
        connected.channel.embeddedEventLoop.run()
    }

    @Test func `is released after its end`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        weak let connection = connected.connection
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        try connected.receive(RawPeer.request(3, RawPeer.fields(token: fixture.token()), ends: false))
        connected.channel.close(promise: nil)
        connected.forget()
        connected.pass(.seconds(5))
        #expect(connection == nil)
    }

    // Time.

    @Test func `without SETTINGS is closed`() throws {
        let connected = try Connected(fixture)
        try connected.receive(RawPeer.preface)
        connected.pass(.seconds(4))
        #expect(connected.isOpen)
        connected.pass(.seconds(2))
        #expect(!connected.isOpen)
    }

    @Test func `that stays unknown for too long gets the reason`() throws {
        let unknown = try Connected(fixture)
        try unknown.open()
        unknown.channel.pipeline.fireUserInboundEventTriggered(ConnectionOverdue())
        #expect(goAway(try unknown.sent()) == #"{"reason":"IdleTimeout"}"#)
        #expect(!unknown.isOpen)
    }

    @Test func `that is known is never ended as overdue`() throws {
        let byToken = try Connected(fixture)
        try byToken.open()
        #expect(reason(try byToken.ask(try fixture.fields())) == "200")
        let byCertificate = try Connected(fixture, certificate: try certificate("com.example.app"))
        try byCertificate.open()
        for known in [byToken, byCertificate] {
            known.channel.pipeline.fireUserInboundEventTriggered(ConnectionOverdue())
            #expect(goAway(try known.sent()) == nil && known.isOpen)
        }
    }

    @Test func `that sends, and never acknowledges SETTINGS, is cut off`() throws {
        let connected = try Connected(fixture)
        try connected.receive(RawPeer.opening)
        _ = try connected.sent()
        connected.pass(.seconds(60))
        #expect(connected.isOpen, "a client that sends nothing need not read")
        let ping = RawFrame(RawFrame.ping, [1, 2, 3, 4, 5, 6, 7, 8]).bytes
        try connected.receive(ping)
        connected.pass(.seconds(28))
        try connected.receive(ping)
        #expect(connected.isOpen)
        connected.pass(.seconds(3))
        let last = try #require(try connected.sent().last { $0.type == RawFrame.goAway })
        #expect(RawFrame.number(last.payload[4...]) == 4)
        #expect(!connected.isOpen)
    }

    @Test func `that is idle gets the reason`() throws {
        let known = try Connected(fixture, certificate: try certificate("com.example.app"))
        try known.open()
        known.pass(.minutes(74))
        try known.receive(RawFrame(RawFrame.ping, [1, 2, 3, 4, 5, 6, 7, 8]).bytes)
        known.pass(.minutes(74))
        #expect(known.isOpen)
        known.pass(.minutes(2))
        #expect(!known.isOpen)
    }

    @Test func `that does not end a header block is cut off`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        try connected.receive(RawFrame(RawFrame.headers, stream: 1, [0x83]).bytes)
        connected.pass(.seconds(12))
        #expect(try connected.sent().contains { $0.type == RawFrame.goAway })
        #expect(!connected.isOpen)
    }

    @Test func `with an unfinished body has only that stream reset`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        try connected.receive(RawPeer.request(1, try fixture.fields(), ends: false))
        connected.pass(.seconds(12))
        #expect(try connected.sent().contains { $0.streamID == 1 && $0.errorCode == 8 })
        #expect(connected.isOpen)
    }

    @Test func `that does not read is not read from, and is closed`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        connected.channel.isWritable = false
        connected.channel.pipeline.fireChannelWritabilityChanged()
        try connected.receive(RawPeer.request(1, RawPeer.fields()))
        #expect(try connected.sent().isEmpty)
        connected.pass(.seconds(29))
        #expect(connected.isOpen)
        connected.pass(.seconds(3))
        #expect(!connected.isOpen)
    }

    @Test func `continues when it is writable again`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        connected.channel.isWritable = false
        connected.channel.pipeline.fireChannelWritabilityChanged()
        try connected.receive(RawPeer.request(1, RawPeer.fields()))
        connected.channel.isWritable = true
        connected.channel.pipeline.fireChannelWritabilityChanged()
        #expect(connected.peer.answers(try connected.sent())[1]?.status == "403")
        connected.pass(.seconds(60))
        #expect(connected.isOpen)
    }

    // The end.

    @Test func `stops with answers first and the reason last`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        connected.connection?.stop()
        #expect(try connected.sent().isEmpty)
        try connected.receive(RawPeer.request(3, RawPeer.fields(token: fixture.token())))
        #expect(reason(connected.peer.answers(try connected.sent())[3]) == "Shutdown")
        #expect(connected.isOpen)
        fixture.post.envelopes[0].completion?.settle(.accepted)
        let frames = try connected.sent()
        #expect(connected.peer.answers(frames)[1]?.status == "200")
        #expect(frames.last?.type == RawFrame.goAway)
        #expect(goAway(frames) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `stops at once without pending requests`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        connected.connection?.stop()
        #expect(goAway(try connected.sent()) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `whose handshake ends after the stop is closed before its first request`() throws {
        let connected = try Connected(fixture, afterStop: true)
        #expect(connected.isOpen)
        _ = try connected.sent()
        #expect(!connected.isOpen)
    }

    @Test func `stops in the end even if a completion never comes`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        connected.connection?.stop()
        connected.pass(.seconds(7))
        #expect(connected.isOpen)
        connected.pass(.seconds(2))
        #expect(goAway(try connected.sent()) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `of another protocol is closed without an HTTP/2 frame`() throws {
        let connected = try Connected(fixture)
        _ = try connected.sent()
        try connected.receive(Array("POST /3/device/00 HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(try connected.sent().isEmpty)
        #expect(!connected.isOpen)
    }

    @Test func `that floods gets ENHANCE_YOUR_CALM and is closed`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let ping = RawFrame(RawFrame.ping, [UInt8](repeating: 0, count: 8)).bytes
        try connected.receive((0..<2000).flatMap { _ in ping })
        let last = try connected.sent().last
        #expect(last?.type == RawFrame.goAway)
        #expect(last.map { RawFrame.number($0.payload[4...]) } == 0xB)
        #expect(!connected.isOpen)
    }
}
