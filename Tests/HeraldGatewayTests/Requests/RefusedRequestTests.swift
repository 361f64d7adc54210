import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import Testing

@testable import HeraldGateway

/// The journal's line about a refused request.
struct RefusedRequestTests {
    let fixture: Fixture
    let senders = SenderNames()

    init() async throws {
        fixture = try await Fixture()
        fixture.senders = senders
    }

    private func ask(
        _ changes: [(String, String?)],
        body: [UInt8] = Array("{}".utf8),
        certificate: [UInt8]? = nil
    ) throws -> JournalEvent {
        let connected = try Connected(fixture, certificate: certificate)
        try connected.open()
        var fields = try fixture.fields()
        for (name, value) in changes { fields = `a request`.changed(fields, name, value) }
        let answer = try #require(try connected.ask(fields, body: body))
        let line = try #require(fixture.post.refused.last)
        #expect(line.id == NotificationID(answer.fields["apns-id"] ?? answer.fields["apns-request-id"] ?? ""))
        #expect(answer.status == line.refusal.map { "\($0.reason.httpStatus)" })
        #expect(line.state == .refusedByService && line.time == fixture.now)
        return line
    }

    private func name(_ line: JournalEvent) -> String? {
        line.request.flatMap { senders.name(of: $0.sender) }
    }

    @Test func `has the key, the request's facts, and the app`() throws {
        let id = "F4121B12-E0BF-3266-F079-D9253E98BF49"
        let line = try ask(
            [("apns-id", id), ("apns-push-type", "alert"), ("apns-priority", "5"), ("apns-collapse-id", "a\u{7}")],
            body: Array("{ }".utf8)
        )
        #expect(line.id == NotificationID(id) && line.app == AppNumber(1) && line.device == DeviceNumber(7))
        let refusal = try #require(line.refusal)
        #expect(refusal.reason == .badCollapseID && refusal.topic == nil && refusal.environment == .production)
        #expect(refusal.explanation == "apns-collapse-id is \(CollapseID.rule)")
        let facts = try #require(line.request)
        #expect(facts.pushType == .alert && facts.priority == .conserving && facts.payloadBytes == 3)
        #expect(name(line) == fixture.key.id)
    }

    @Test func `has the topic as text if no app has it, and no device without a valid token`() throws {
        let line = try ask([
            ("apns-topic", "org.elsewhere.app"), (":path", "/3/device/" + String(repeating: "0", count: 64)),
            ("apns-push-type", "nonsense"), (":authority", "api.sandbox.push.apple.com"),
        ])
        #expect(line.app == JournalRefusal.noApp && line.recipient == .nobody)
        #expect(line.refusal?.topic == "org.elsewhere.app" && line.refusal?.environment == .sandbox)
        #expect(line.request?.pushType == nil && line.request?.priority == nil)
    }

    @Test func `has no sender before the first valid provider token`() throws {
        #expect(name(try ask([("authorization", "bearer x")])) == nil)
    }

    @Test(arguments: ["/", "/3", "/3/device", "/3/device/", "/x/device/\(String(repeating: "0", count: 64))"])
    func `is made of any path`(path: String) throws {
        #expect(try ask([(":path", path)]).device == nil)
    }

    @Test func `names a certificate of the ledger by its credential, and another by its serial number`() async throws {
        let issued = try await fixture.trust.provider("com.example.app")
        _ = await fixture.trustService.reload()
        let known = try ask([("apns-priority", "x")], certificate: try fixture.der(issued.pem))
        #expect(name(known) == issued.credential.id)
        let der = try TestCertificate.provider("com.example.app", team: "TEAM00000C").der(fixture.trust, .provider)
        let foreign = try ask([("apns-priority", "x")], certificate: der)
        #expect(name(foreign)?.hasPrefix("certificate ") == true)
    }

    @Test func `tells what the post office refuses, and has the sender of what it accepts`() throws {
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        let line = try ask([])
        #expect(line.refusal?.reason == .unregistered && line.device == DeviceNumber(7))
        let envelope = try #require(fixture.post.envelopes.first)
        #expect(senders.name(of: envelope.notification.sender) == fixture.key.id)
    }

    @Test func `is written for channels, too`() throws {
        let line = try ask([(":path", "/4/broadcasts/apps/com.example.app"), ("apns-priority", "10")])
        #expect(line.refusal?.reason == .featureNotEnabled && line.app == AppNumber(1) && line.device == nil)
    }

    @Test func `of the binary interface ends with the provider's identifier`() async throws {
        let issued = try await fixture.trust.provider("com.example.app")
        _ = await fixture.trustService.reload()
        let bench = try BinaryBench(fixture, certificate: try fixture.der(issued.pem))
        let forged = String(repeating: "0", count: 64)
        try bench.receive(try fixture.notification(0xAB, priority: .conserving, token: forged))
        let line = try #require(fixture.post.refused.first)
        #expect(fixture.post.refused.count == 1 && line.id.low & 0xFFFF_FFFF == 0xAB)
        #expect(line.refusal?.reason == .badDeviceToken && line.app == AppNumber(1) && line.device == nil)
        #expect(name(line) == issued.credential.id && line.request?.priority == .conserving)
    }

    @Test func `of the binary interface tells malformed frames and later failures`() async throws {
        let certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
        try BinaryBench(fixture, certificate: certificate).receive([9])
        #expect(fixture.post.refused.last?.refusal?.explanation.contains("malformed") == true)
        fixture.post.settle { $0.completion?.settle(.refused(.serviceUnavailable)) }
        let bench = try BinaryBench(fixture, certificate: certificate)
        try bench.receive(try fixture.notification(1))
        let (line, envelope) = (fixture.post.refused.last, fixture.post.envelopes.last)
        #expect(line?.refusal?.reason == .serviceUnavailable && line?.id == envelope?.notification.id)
        #expect(line?.device == DeviceNumber(7) && line?.request?.pushType == .alert)
    }
}
