import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldGateway
@testable import HeraldTrust

struct BinaryConnectionTests {
    let fixture: Fixture
    let certificate: [UInt8]

    init() async throws {
        fixture = try await Fixture()
        certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
    }

    private func bench(configure: (inout BinaryConfiguration) -> Void = { _ in }) throws -> BinaryBench {
        try BinaryBench(fixture, certificate: certificate, configure: configure)
    }

    private func numbers(_ range: ClosedRange<UInt32>) throws -> [UInt8] {
        try range.flatMap { try fixture.notification($0) }
    }

    @Test func `success is silence`() throws {
        let bench = try bench()
        try bench.receive(try numbers(1...100))
        #expect(bench.posted.count == 100)
        #expect(try bench.answer() == nil)
        #expect(!bench.hasEnded)
    }

    @Test func `an accepted notification claims the topic for the certificate's team, a refused one does not`()
        async throws
    {
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        _ = await fixture.trustService.reload()
        let der = try TestCertificate.provider("com.example.app", team: "TEAM00000C").der(fixture.trust, .provider)
        func others() -> FirstUses.Decision {
            let use = TopicUse(topic: KnownApps.chat.topic, team: "TEAM00000A", isNamed: false)
            return fixture.trustService.firstUses.reserve(use)
        }
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        try BinaryBench(fixture, certificate: der).receive(try numbers(1...1))
        guard case .reserved(let reservation) = others() else {
            Issue.record("a refused notification has claimed the topic")
            return
        }
        fixture.trustService.firstUses.cancel(reservation)
        fixture.post.decide(.accepted)
        try BinaryBench(fixture, certificate: der).receive(try numbers(1...1))
        guard case .taken = others() else {
            Issue.record("an accepted notification has not claimed the topic")
            return
        }
    }

    @Test func `a notification whose claim is undecided is a processing error`() async throws {
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        _ = await fixture.trustService.reload()
        let der = try TestCertificate.provider("com.example.app", team: "TEAM00000C").der(fixture.trust, .provider)
        let waiting = try BinaryBench(fixture, certificate: der)
        try waiting.receive(try numbers(1...1))
        for _ in 1...2 { fixture.trustService.firstUses.expireClaims() }
        #expect(try waiting.answer() == BinaryErrorResponse(.processingError, identifier: 1))
        let later = try BinaryBench(fixture, certificate: der)
        try later.receive(try numbers(2...2))
        #expect(try later.answer() == BinaryErrorResponse(.processingError, identifier: 2))
        #expect(later.posted.count == 1, "the second was not posted")
    }

    @Test(arguments: BinaryNotification.Form.allCases)
    func `every form becomes a notification`(_ form: BinaryNotification.Form) throws {
        let bench = try bench()
        let expiration = UInt32(clamping: fixture.now.seconds + 60)
        try bench.receive(try fixture.notification(9, form: form, expiration: expiration))
        let notification = try #require(fixture.post.envelopes.first?.notification)
        #expect(notification.payload == Array(#"{"aps":{"alert":"hi"}}"#.utf8))
        #expect(notification.priority == .immediate)
        #expect(notification.pushType == .alert)
        let longest = fixture.now + fixture.post.longestStorage
        #expect(notification.storedUntil == (form == .simple ? longest : fixture.now + .seconds(60)))
        #expect("\(notification.id)".hasSuffix("00000009") == (form != .simple))
    }

    @Test func `expiration and priority are those of the frame`() throws {
        let bench = try bench()
        let past = UInt32(clamping: fixture.now.seconds - 1)
        for (expiration, priority) in [(UInt32(0), Priority.conserving), (past, .immediate), (.max, .immediate)] {
            try bench.receive(try fixture.notification(1, expiration: expiration, priority: priority))
        }
        try bench.receive(try fixture.notification(1))
        let longest = fixture.now + fixture.post.longestStorage
        #expect(fixture.post.envelopes.map(\.notification.storedUntil) == [nil, nil, longest, longest])
        #expect(
            fixture.post.envelopes.map(\.notification.priority) == [.conserving, .immediate, .immediate, .immediate]
        )
    }

    @Test func `notifications after a refused one are discarded`() throws {
        let bench = try bench()
        let bad = try fixture.notification(51, token: String(repeating: "00", count: 32))
        try bench.receive(try numbers(1...50) + bad + numbers(52...100))
        try bench.receive(try numbers(101...150))
        #expect(bench.posted.count == 50)
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 51))
        #expect(bench.hasEnded)
    }

    @Test func `the error response waits for everything before its notification`() throws {
        let envelopes = Mutex<[Envelope]>([])
        fixture.post.settle { envelope in envelopes.withLock { $0.append(envelope) } }
        let bench = try bench()
        try bench.receive(try numbers(1...3) + [77])
        #expect(try bench.answer() == nil)
        for envelope in envelopes.withLock({ $0 }).reversed() {
            envelope.completion?.settle(.accepted)
            envelope.completion?.settle(.accepted)
        }
        #expect(try bench.answer() == BinaryErrorResponse(.protocolError, identifier: 0))
    }

    @Test func `one that could not be stored is a processing error, and those behind it are to be sent again`() throws {
        fixture.post.settle { envelope in
            let isBad = "\(envelope.notification.id)".hasSuffix("00000002")
            envelope.completion?.settle(isBad ? .refused(.serviceUnavailable) : .accepted)
        }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        #expect(try bench.answer() == BinaryErrorResponse(.processingError, identifier: 2))
        try bench.receive(try numbers(4...5))
        #expect(bench.posted.count == 3)
    }

    @Test func `an unknown outcome closes the connection without an error response`() throws {
        fixture.post.settle { envelope in
            let isUnknown = "\(envelope.notification.id)".hasSuffix("00000002")
            envelope.completion?.settle(isUnknown ? .unknown : .accepted)
        }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        #expect(try bench.answer() == nil)
        #expect(!bench.isOpen)
    }

    @Test(arguments: [
        (RefusalReason.serviceUnavailable, BinaryStatus.processingError), (.unregistered, .invalidToken),
        (.badDeviceToken, .invalidToken), (.tooManyRequests, .processingError),
    ])
    func `what the post office refuses has its status`(refusalReason: RefusalReason, status: BinaryStatus) throws {
        fixture.post.decide(.refused(refusalReason, since: nil))
        let bench = try bench()
        try bench.receive(try numbers(7...8))
        #expect(try bench.answer() == BinaryErrorResponse(status, identifier: 7))
        #expect(bench.posted.count == 1)
    }

    @Test(arguments: [
        ("com.example.other", PushEnvironment.production), ("com.example.app", .sandbox),
        ("com.example.app.voip", .production),
    ])
    func `a token of another app is an invalid token`(name: String, environment: PushEnvironment) throws {
        let bench = try bench()
        let token = fixture.token(App(topic: topic(name), environment: environment))
        try bench.receive(try fixture.notification(5, token: token))
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 5))
    }

    @Test func `the server name decides the environment`() throws {
        let bench = try BinaryBench(fixture, certificate: certificate, serverName: "gateway.sandbox.push.apple.com")
        try bench.receive(
            try fixture.notification(
                1,
                token: fixture.token(App(topic: topic("com.example.app"), environment: .sandbox))
            )
        )
        #expect(bench.posted.count == 1)
        try bench.receive(try fixture.notification(2))
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 2))
    }

    @Test func `of several topics the subject's counts`() async throws {
        let many = try fixture.der(try await fixture.trust.provider("com.example.other", "com.example.app").pem)
        let bench = try BinaryBench(fixture, certificate: many)
        try bench.receive(
            try fixture.notification(
                1,
                token: fixture.token(App(topic: topic("com.example.other"), environment: .production))
            )
        )
        #expect(bench.posted.count == 1)
        try bench.receive(try fixture.notification(2))
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 2))
    }

    @Test func `a topic that wants a provider token is not a topic here`() async throws {
        let activity = try fixture.der(try await fixture.trust.provider("com.example.app.push-type.liveactivity").pem)
        let bench = try BinaryBench(fixture, certificate: activity)
        try bench.receive(try fixture.notification(2))
        #expect(try bench.answer() == BinaryErrorResponse(.missingTopic, identifier: 2))
    }

    @Test func `a silent payload must not have priority 10`() throws {
        let silent = #"{"aps":{"content-available":1}}"#
        let bench = try bench()
        try bench.receive(try fixture.notification(1, priority: .conserving, payload: silent))
        try bench.receive(try fixture.notification(2, payload: silent))
        #expect(bench.posted.count == 2)
        #expect(fixture.post.envelopes.allSatisfy { $0.notification.pushType == .background })
        #expect(fixture.post.envelopes.allSatisfy { $0.notification.priority == .conserving })
        try bench.receive(try fixture.notification(3, priority: .immediate, payload: silent))
        #expect(try bench.answer() == BinaryErrorResponse(.protocolError, identifier: 3))
    }

    @Test func `a payload that is not JSON is refused, unless the operator takes it`() throws {
        let strict = try bench()
        try strict.receive(try fixture.notification(3, payload: "{"))
        #expect(try strict.answer() == BinaryErrorResponse(.protocolError, identifier: 3))
        fixture.configuration.rules.takesUnreadablePayloads = true
        let lenient = try bench()
        try lenient.receive(try fixture.notification(4, payload: "{"))
        #expect(try lenient.answer() == nil)
        #expect(fixture.post.discarded == [.discardedUndeliverable])
    }

    @Test func `the simple form is closed without a response`() throws {
        let bench = try bench()
        try bench.receive(try fixture.notification(nil, form: .simple, token: String(repeating: "00", count: 32)))
        #expect(try bench.answer() == nil)
        #expect(bench.hasEnded)
    }

    @Test func `a frame without an identifier is answered with 0`() throws {
        let bench = try bench()
        try bench.receive(try fixture.notification(nil, token: String(repeating: "00", count: 32)))
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 0))
    }

    @Test func `stops reading at the limit of notifications in flight`() throws {
        let envelopes = Mutex<[Envelope]>([])
        fixture.post.settle { envelope in envelopes.withLock { $0.append(envelope) } }
        let bench = try bench { $0.notificationsInHand = 10 }
        try bench.receive(try numbers(1...100))
        #expect(bench.posted.count == 10)
        var settled = 0
        while settled < 100 {
            let envelope = envelopes.withLock { $0[settled] }
            envelope.completion?.settle(.accepted)
            settled += 1
            bench.channel.embeddedEventLoop.run()
            #expect(bench.posted.count == min(100, settled + 10))
        }
        #expect(try bench.answer() == nil)
    }

    @Test func `a stop names the last accepted notification`() throws {
        let envelopes = Mutex<[Envelope]>([])
        fixture.post.settle { envelope in envelopes.withLock { $0.append(envelope) } }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        bench.stop()
        try bench.receive(try numbers(4...5))
        #expect(try bench.answer() == nil)
        for envelope in envelopes.withLock({ $0 }) { envelope.completion?.settle(.accepted) }
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 3))
        #expect(bench.posted.count == 3)
        bench.pass(.seconds(3))
        #expect(!bench.isOpen)
    }

    @Test func `a stop ends after its timeout`() throws {
        fixture.post.settle { envelope in
            if "\(envelope.notification.id)".hasSuffix("00000001") { envelope.completion?.settle(.accepted) }
        }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        bench.stop()
        bench.pass(.seconds(10))
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 1))
    }

    @Test func `a stop of an unused connection has no response`() throws {
        let bench = try bench()
        bench.stop()
        #expect(try bench.answer() == nil)
        #expect(bench.hasEnded)
    }

    @Test func `half a notification and silence end the connection, at the last that was accepted`() throws {
        let bench = try bench()
        try bench.receive(try numbers(1...2) + numbers(3...3).prefix(40))
        bench.pass(.seconds(9))
        #expect(!bench.hasEnded)
        bench.pass(.seconds(2))
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 2))
    }

    @Test func `silence between notifications is allowed for an hour, and not for ever`() throws {
        let bench = try bench()
        try bench.receive(try numbers(1...2))
        bench.pass(.hours(1))
        #expect(!bench.hasEnded)
        bench.pass(.minutes(20))
        #expect(bench.hasEnded)
        // One more may have been on its way.
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 2))
    }

    @Test func `bytes after the response are read for a while, and then no more`() throws {
        let bench = try bench()
        try bench.receive([77])
        #expect(bench.isOpen)
        for _ in 0..<4 {
            bench.pass(.seconds(1))
            try bench.receive(try numbers(1...10))
        }
        #expect(bench.isOpen)
        bench.pass(.seconds(3))
        #expect(!bench.isOpen)
        #expect(bench.posted == [])
    }

    @Test func `bytes after the response have a limit`() throws {
        let bench = try bench { $0.drainBytes = 1000 }
        try bench.receive([77])
        try bench.receive([UInt8](repeating: 0, count: 1001))
        #expect(!bench.isOpen)
    }

    @Test func `a revoked certificate ends the connection`() async throws {
        let issued = try await fixture.trust.provider("com.example.app")
        _ = try await fixture.trust.folder.providers.revoke(issued.credential.id, now: fixture.now)
        let bench = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        try bench.receive(try numbers(1...1))
        bench.connection.reviewCertificate()
        #expect(!bench.hasEnded)
        #expect(fixture.trustService.reload(nil).revocations == [.provider])
        bench.connection.reviewCertificate()
        #expect(bench.hasEnded)
        let second = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        #expect(second.hasEnded)
    }

    @Test func `a certificate of the other environment ends the connection`() async throws {
        let production = try await fixture.trust.provider("com.example.app", environments: [.production])
        let bench = try BinaryBench(
            fixture,
            certificate: try fixture.der(production.pem),
            serverName: "gateway.sandbox.push.apple.com"
        )
        #expect(bench.hasEnded)
        #expect(try bench.answer() == nil)
    }

    @Test(
        arguments: [
            (1, BinaryErrorResponse(.shutdown, identifier: 1)),
            (nil, BinaryErrorResponse(.processingError, identifier: 1)),
        ] as [(UInt32?, BinaryErrorResponse)]
    )
    func `an end says what is accepted while something is open, since silence would say all`(
        settled: UInt32?,
        answer: BinaryErrorResponse
    ) async throws {
        fixture.post.settle { envelope in
            guard let settled, "\(envelope.notification.id)".hasSuffix("0000000\(settled)") else { return }
            envelope.completion?.settle(.accepted)
        }
        let issued = try await fixture.trust.provider("com.example.app")
        _ = try await fixture.trust.folder.providers.revoke(issued.credential.id, now: fixture.now)
        let revoked = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        try revoked.receive(try numbers(1...3))
        let stopped = try bench()
        try stopped.receive(try numbers(1...3))
        stopped.stop()
        stopped.pass(.seconds(10))
        #expect(try stopped.answer() == answer)
        #expect(fixture.trustService.reload(nil).revocations == [.provider])
        revoked.connection.reviewCertificate()
        #expect(try revoked.answer() == answer)
        #expect(revoked.hasEnded)
    }

    @Test func `a client without certificate may speak HTTP/2 only`() throws {
        let binary = try BinaryBench(fixture, certificate: nil)
        try binary.receive(try numbers(1...1))
        #expect(binary.hasEnded)
        let silent = try BinaryBench(fixture, certificate: nil)
        silent.pass(.seconds(6))
        #expect(silent.hasEnded)
        #expect(fixture.post.envelopes.isEmpty)
    }
}
