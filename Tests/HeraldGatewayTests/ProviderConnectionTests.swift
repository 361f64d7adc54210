import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldGateway

@Suite
struct `a provider's connection` {
    let fixture: Fixture

    init() throws {
        fixture = try Fixture()
    }

    private func reason(_ answer: Answer?) -> String {
        guard let answer else { return "no answer" }
        guard answer.status != "200" else { return "200" }
        return answer.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? answer.body
    }

    private func farewell(_ frames: [RawFrame]) -> String? {
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

    @Test func `by certificate with several topics must name one`() throws {
        let issued = try fixture.trust.provider("com.example.app", "com.example.other")
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

    @Test func `with a certificate for the other environment is told so once it has begun`() throws {
        let der = try certificate("com.example.app", marks: [1])
        let connected = try Connected(fixture, certificate: der, serverName: "api.push.apple.com")
        #expect(farewell(try connected.sent()) == nil)
        try connected.receive(RawPeer.opening + RawPeer.request(1))
        let frames = try connected.sent()
        #expect(farewell(frames) == #"{"reason":"BadCertificateEnvironment"}"#)
        #expect(frames.last { $0.type == RawFrame.goAway }?.payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 0])
        #expect(!connected.isOpen)
        #expect(fixture.post.letters.isEmpty)
    }

    @Test func `without a name in its handshake has the environment that each request names`() throws {
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

    @Test func `with a name in its handshake has that environment, whatever requests name`() throws {
        let connected = try Connected(fixture, serverName: "api.sandbox.push.apple.com")
        try connected.open()
        #expect(reason(try connected.ask(try fixture.fields())) == "BadDeviceToken")
        let app = App(topic: topic("com.example.app"), environment: .sandbox)
        #expect(reason(try connected.ask(try fixture.fields(app: app))) == "200")
    }

    @Test func `with a certificate that is not good is told so, and no token helps`() throws {
        let stranger = try Fixture()
        let der = try TestCertificate.provider("com.example.app").der(stranger.trust, .provider)
        let connected = try Connected(fixture, certificate: der)
        try connected.receive(RawPeer.opening + RawPeer.request(1, try fixture.fields()))
        #expect(farewell(try connected.sent()) == #"{"reason":"BadCertificate"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `ends when its certificate does`() throws {
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        #expect(reason(try connected.ask(RawPeer.fields(token: fixture.token()))) == "200")
        fixture.trust.clock.advance(by: .seconds(2 * 86_400))
        connected.pass(.seconds(2))
        #expect(farewell(try connected.sent()) == #"{"reason":"BadCertificate"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `with a key of the other environment, of too few topics, or revoked, is refused`() throws {
        let sandbox = try fixture.trust.providerKey("com.example.app", environments: [.sandbox])
        let narrow = try fixture.trust.providerKey("com.example.else")
        fixture.office.providerTokens.replaceBook(try book())
        let cases = [(sandbox, "BadEnvironmentKeyInToken"), (narrow, "TopicDisallowed")]
        for (key, expected) in cases {
            let connected = try Connected(fixture)
            try connected.open()
            let fields = RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(key))])
            #expect(reason(try connected.ask(fields)) == expected)
        }
    }

    private func book() throws -> CredentialBook {
        CredentialBook(keys: try fixture.trust.folder.providerKeys(), certificateClaims: [])
    }

    @Test func `notices on the next request that its key is gone`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        #expect(reason(try connected.ask(try fixture.fields())) == "200")
        fixture.office.providerTokens.replaceBook(CredentialBook())
        #expect(reason(try connected.ask(try fixture.fields())) == "InvalidProviderToken")
    }

    @Test func `notices on the next request that its token is too old`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let fields = try fixture.fields()
        #expect(reason(try connected.ask(fields)) == "200")
        fixture.trust.clock.advance(by: .seconds(3601))
        #expect(reason(try connected.ask(fields)) == "ExpiredProviderToken")
        #expect(reason(try connected.ask(try fixture.fields())) == "200")
    }

    @Test func `may not change its token too often, nor its team`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        func ask(_ issued: Int64) throws -> String {
            let authorization = try fixture.bearer(issued: .seconds(issued))
            return reason(try connected.ask(RawPeer.fields(token: fixture.token(), [("authorization", authorization)])))
        }
        #expect(try ask(0) == "200")
        #expect(try ask(-1) == "200")
        #expect(try ask(-2) == "TooManyProviderTokenUpdates")
        let other = try fixture.trust.providerKey("com.example.app", team: "TEAM000002")
        fixture.office.providerTokens.replaceBook(try book())
        let fields = RawPeer.fields(token: fixture.token(), [("authorization", try fixture.bearer(other))])
        #expect(reason(try connected.ask(fields)) == "InvalidProviderToken")
    }

    @Test func `that shows one bad token after the other is cut off`() throws {
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

    @Test func `that shows the same bad token again and again is told so each time`() throws {
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

    @Test func `answers when the receipt comes, from whatever thread, a batch in one write`() async throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        var burst: [UInt8] = []
        for stream in stride(from: UInt32(1), to: 21, by: 2) {
            burst += RawPeer.request(stream, RawPeer.fields(token: fixture.token()))
        }
        try connected.receive(burst)
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        for (index, letter) in fixture.post.letters.enumerated() {
            letter.receipt?.settle(index == 3 ? .refused(.serviceUnavailable) : .accepted)
        }
        connected.channel.embeddedEventLoop.run()
        let written = try #require(try connected.channel.readOutbound(as: ByteBuffer.self))
        #expect(try connected.channel.readOutbound(as: ByteBuffer.self) == nil)
        let answers = connected.peer.answers(connected.peer.frames(written.readableBytesView))
        #expect(answers.count == 10)
        #expect(answers.values.count { $0.status == "200" } == 9)
        #expect(answers[7]?.status == "503")
    }

    @Test func `forgets a receipt that comes after the stream's or the connection's end`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        try connected.receive(RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes)
        try connected.receive(RawPeer.request(3, RawPeer.fields(token: fixture.token())))
        fixture.post.letters[0].receipt?.settle(.accepted)
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        fixture.post.letters[0].receipt?.settle(.accepted)
        _ = try connected.channel.finish(acceptAlreadyClosed: true)
        fixture.post.letters[1].receipt?.settle(.accepted)
        connected.channel.embeddedEventLoop.run()
    }

    @Test func `leaves nothing behind`() throws {
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

    @Test func `that does not begin is closed`() throws {
        let connected = try Connected(fixture)
        try connected.receive(RawPeer.preface)
        connected.pass(.seconds(4))
        #expect(connected.isOpen)
        connected.pass(.seconds(2))
        #expect(!connected.isOpen)
    }

    @Test func `that is not used is told so, sooner if nobody knows whose it is`() throws {
        let anonymous = try Connected(fixture)
        try anonymous.open()
        anonymous.pass(.seconds(299))
        #expect(anonymous.isOpen)
        anonymous.pass(.seconds(3))
        #expect(farewell(try anonymous.sent()) == #"{"reason":"IdleTimeout"}"#)
        #expect(!anonymous.isOpen)

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

    @Test func `that sends half a body has that stream reset, and no more`() throws {
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

    @Test func `goes on where it stopped when it can be written to again`() throws {
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

    @Test func `is stopped with answers first, and the reason last`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        connected.connection?.stop()
        #expect(try connected.sent().isEmpty)
        try connected.receive(RawPeer.request(3, RawPeer.fields(token: fixture.token())))
        #expect(reason(connected.peer.answers(try connected.sent())[3]) == "Shutdown")
        #expect(connected.isOpen)
        fixture.post.letters[0].receipt?.settle(.accepted)
        let frames = try connected.sent()
        #expect(connected.peer.answers(frames)[1]?.status == "200")
        #expect(frames.last?.type == RawFrame.goAway)
        #expect(farewell(frames) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `is stopped at once if nothing is in hand`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        connected.connection?.stop()
        #expect(farewell(try connected.sent()) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `whose handshake ends after the stop is closed before it can ask for anything`() throws {
        let connected = try Connected(fixture, afterStop: true)
        #expect(connected.isOpen)
        _ = try connected.sent()
        #expect(!connected.isOpen)
    }

    @Test func `is stopped at last even if a receipt never comes`() throws {
        fixture.post.decide(.pending)
        let connected = try Connected(fixture, certificate: try certificate("com.example.app"))
        try connected.open()
        try connected.receive(RawPeer.request(1, RawPeer.fields(token: fixture.token())))
        connected.connection?.stop()
        connected.pass(.seconds(7))
        #expect(connected.isOpen)
        connected.pass(.seconds(2))
        #expect(farewell(try connected.sent()) == #"{"reason":"Shutdown"}"#)
        #expect(!connected.isOpen)
    }

    @Test func `of another protocol is closed without a word of this one`() throws {
        let connected = try Connected(fixture)
        _ = try connected.sent()
        try connected.receive(Array("POST /3/device/00 HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(try connected.sent().isEmpty)
        #expect(!connected.isOpen)
    }

    @Test func `that floods is told to be calm, and closed`() throws {
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
