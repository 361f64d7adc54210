import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldGateway

struct BinaryConnectionTests {
    let fixture: Fixture
    let certificate: [UInt8]

    init() throws {
        fixture = try Fixture()
        certificate = try fixture.der(try fixture.trust.provider("com.example.app").pem)
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

    @Test(arguments: BinaryNotification.Form.allCases)
    func `every form becomes a notification`(_ form: BinaryNotification.Form) throws {
        let bench = try bench()
        let expiration = UInt32(clamping: fixture.now.seconds + 60)
        try bench.receive(try fixture.notification(9, form: form, expiration: expiration))
        let notification = try #require(fixture.post.letters.first?.notification)
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
        #expect(fixture.post.letters.map(\.notification.storedUntil) == [nil, nil, longest, longest])
        #expect(fixture.post.letters.map(\.notification.priority) == [.conserving, .immediate, .immediate, .immediate])
    }

    @Test func `what is behind a refused notification is discarded unread`() throws {
        let bench = try bench()
        let bad = try fixture.notification(51, token: String(repeating: "00", count: 32))
        try bench.receive(try numbers(1...50) + bad + numbers(52...100))
        try bench.receive(try numbers(101...150))
        #expect(bench.posted.count == 50)
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 51))
        #expect(bench.hasEnded)
    }

    @Test func `the answer waits for everything before the one that it names`() throws {
        let letters = Mutex<[Letter]>([])
        fixture.post.settle { letter in letters.withLock { $0.append(letter) } }
        let bench = try bench()
        try bench.receive(try numbers(1...3) + [77])
        #expect(try bench.answer() == nil)
        for letter in letters.withLock({ $0 }).reversed() {
            letter.receipt?.settle(.accepted)
            letter.receipt?.settle(.accepted)
        }
        #expect(try bench.answer() == BinaryErrorResponse(.protocolError, identifier: 0))
    }

    @Test func `one that could not be stored is a processing error, and those behind it are to be sent again`() throws {
        fixture.post.settle { letter in
            let isBad = "\(letter.notification.id)".hasSuffix("00000002")
            letter.receipt?.settle(isBad ? .refused(.serviceUnavailable) : .accepted)
        }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        #expect(try bench.answer() == BinaryErrorResponse(.processingError, identifier: 2))
        try bench.receive(try numbers(4...5))
        #expect(bench.posted.count == 3)
    }

    @Test(arguments: [
        (Rejection.serviceUnavailable, BinaryStatus.processingError), (.unregistered, .invalidToken),
        (.badDeviceToken, .invalidToken), (.tooManyRequests, .processingError),
    ])
    func `what the post office refuses has its status`(rejection: Rejection, status: BinaryStatus) throws {
        fixture.post.decide(.refused(rejection, since: nil))
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

    @Test func `the name of the handshake decides the environment`() throws {
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

    @Test func `of several topics the subject's counts`() throws {
        let many = try fixture.der(try fixture.trust.provider("com.example.other", "com.example.app").pem)
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

    @Test func `a topic that wants a provider token is no topic here`() throws {
        let activity = try fixture.der(try fixture.trust.provider("com.example.app.push-type.liveactivity").pem)
        let bench = try BinaryBench(fixture, certificate: activity)
        try bench.receive(try fixture.notification(2))
        #expect(try bench.answer() == BinaryErrorResponse(.missingTopic, identifier: 2))
    }

    @Test func `a payload that shows nothing has not priority 10`() throws {
        let silent = #"{"aps":{"content-available":1}}"#
        let bench = try bench()
        try bench.receive(try fixture.notification(1, priority: .conserving, payload: silent))
        try bench.receive(try fixture.notification(2, payload: silent))
        #expect(bench.posted.count == 2)
        #expect(fixture.post.letters.allSatisfy { $0.notification.pushType == .background })
        #expect(fixture.post.letters.allSatisfy { $0.notification.priority == .conserving })
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

    @Test func `the simple form is closed without a word`() throws {
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

    @Test func `nothing is read while the post office has as many as it may`() throws {
        let letters = Mutex<[Letter]>([])
        fixture.post.settle { letter in letters.withLock { $0.append(letter) } }
        let bench = try bench { $0.notificationsInHand = 10 }
        try bench.receive(try numbers(1...100))
        #expect(bench.posted.count == 10)
        var settled = 0
        while settled < 100 {
            let letter = letters.withLock { $0[settled] }
            letter.receipt?.settle(.accepted)
            settled += 1
            bench.channel.embeddedEventLoop.run()
            #expect(bench.posted.count == min(100, settled + 10))
        }
        #expect(try bench.answer() == nil)
    }

    @Test func `a stop names the last that was accepted`() throws {
        let letters = Mutex<[Letter]>([])
        fixture.post.settle { letter in letters.withLock { $0.append(letter) } }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        bench.connection.stop()
        try bench.receive(try numbers(4...5))
        #expect(try bench.answer() == nil)
        for letter in letters.withLock({ $0 }) { letter.receipt?.settle(.accepted) }
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 3))
        #expect(bench.posted.count == 3)
        bench.pass(.seconds(3))
        #expect(!bench.isOpen)
    }

    @Test func `a stop does not wait for ever`() throws {
        fixture.post.settle { letter in
            if "\(letter.notification.id)".hasSuffix("00000001") { letter.receipt?.settle(.accepted) }
        }
        let bench = try bench()
        try bench.receive(try numbers(1...3))
        bench.connection.stop()
        bench.pass(.seconds(10))
        #expect(try bench.answer() == BinaryErrorResponse(.shutdown, identifier: 1))
    }

    @Test func `a stop of a connection that sent nothing is silent`() throws {
        let bench = try bench()
        bench.connection.stop()
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
        #expect(try bench.answer() == nil)
    }

    @Test func `what comes after the answer is read for a while, and then no more`() throws {
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

    @Test func `what comes after the answer has a limit`() throws {
        let bench = try bench { $0.drainBytes = 1000 }
        try bench.receive([77])
        try bench.receive([UInt8](repeating: 0, count: 1001))
        #expect(!bench.isOpen)
    }

    @Test func `a revoked certificate ends the connection`() throws {
        let issued = try fixture.trust.provider("com.example.app")
        let bench = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        try bench.receive(try numbers(1...1))
        bench.connection.reviewCertificate()
        #expect(!bench.hasEnded)
        _ = try fixture.trust.folder.revokeCredential(issued.credential.id, now: fixture.now)
        #expect(fixture.office.reload().revocations == [.provider])
        bench.connection.reviewCertificate()
        #expect(bench.hasEnded)
        let second = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        #expect(second.hasEnded)
    }

    @Test func `a certificate of the other environment ends the connection`() throws {
        let production = try fixture.trust.provider("com.example.app", environments: [.production])
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
    ) throws {
        fixture.post.settle { letter in
            guard let settled, "\(letter.notification.id)".hasSuffix("0000000\(settled)") else { return }
            letter.receipt?.settle(.accepted)
        }
        let issued = try fixture.trust.provider("com.example.app")
        let revoked = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        try revoked.receive(try numbers(1...3))
        let stopped = try bench()
        try stopped.receive(try numbers(1...3))
        stopped.connection.stop()
        stopped.pass(.seconds(10))
        #expect(try stopped.answer() == answer)
        _ = try fixture.trust.folder.revokeCredential(issued.credential.id, now: fixture.now)
        #expect(fixture.office.reload().revocations == [.provider])
        revoked.connection.reviewCertificate()
        #expect(try revoked.answer() == answer)
        #expect(revoked.hasEnded)
    }

    @Test func `who shows no certificate may speak HTTP/2, and nothing else`() throws {
        let binary = try BinaryBench(fixture, certificate: nil)
        try binary.receive(try numbers(1...1))
        #expect(binary.hasEnded)
        let silent = try BinaryBench(fixture, certificate: nil)
        silent.pass(.seconds(6))
        #expect(silent.hasEnded)
        #expect(fixture.post.letters.isEmpty)
    }
}
