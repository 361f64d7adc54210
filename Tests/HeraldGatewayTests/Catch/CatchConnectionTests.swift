import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import Testing

@testable import HeraldGateway

@Suite
struct `a connection whose requests are caught` {
    let fixture: Fixture
    let connected: Connected
    let fields: [(String, String)]

    init() async throws {
        fixture = try await Fixture()
        fields = try fixture.fields()
        connected = try Connected(fixture)
        try connected.open()
    }

    private var caught: [CaughtMessage] { fixture.catcher.messages().messages }

    @Test func `keeps nothing while catching is off`() throws {
        _ = try connected.ask(fields)
        #expect(caught.isEmpty)
    }

    @Test func `keeps payload, fields, answer and sender, without authorization or token`() throws {
        fixture.catcher.start(.all)
        let body = Array(#"{"aps":{"alert":"hi"}}"#.utf8)
        let answer = try #require(
            try connected.ask(fields + [("herald-tag", "login"), ("apns-priority", "5")], body: body)
        )
        let message = try #require(caught.first)
        #expect(answer.status == "200" && message.status == 200)
        #expect(answer.fields["herald-explanation"] == nil)
        #expect(message.explanation?.isEmpty == false)
        #expect(message.payload == body && message.tag == "login")
        #expect(message.id == answer.fields["apns-id"])
        #expect(message.slot?.device == DeviceNumber(7))
        #expect(message.topic?.name == "com.example.app")
        #expect(message.sender == .key(fixture.key.id))
        #expect(message.headers["apns-priority"] == "5" && message.headers["authorization"] == nil)
        #expect(!message.headers.values.contains { $0.contains(fixture.token()) })
    }

    @Test func `keeps what is refused, with the reason and its words`() throws {
        fixture.catcher.start(.all)
        _ = try connected.ask(fields, body: Array("{".utf8))
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        _ = try connected.ask(fields)
        #expect(caught.map(\.reason) == ["Unregistered", "BadPayload"])
        #expect(caught.map(\.status) == [410, 400])
        #expect(caught.allSatisfy { $0.explanation?.isEmpty == false })
        // The device as the journal has it, also where the payload was refused first.
        #expect(caught.allSatisfy { $0.slot?.device == DeviceNumber(7) })
    }

    @Test func `keeps the times and the retry-after of answers, delayed ones too`() throws {
        fixture.catcher.start(.all)
        _ = try connected.ask(fields)
        func start(_ kind: Drill.Kind, first: Int) {
            #expect(fixture.drills.start(Drill(kind: kind, first: first, duration: .seconds(60), seed: 1)) != nil)
        }
        start(.refuse(.tooManyRequests, retryAfter: .seconds(33)), first: 1)
        start(.latency(.seconds(5) ... .seconds(5)), first: 2)
        _ = try connected.ask(fields)
        _ = try connected.ask(fields)
        #expect(caught.map(\.retryAfter) == [nil, 33, nil])
        #expect(caught.map { $0.answered.map { $0 - fixture.now } } == [.seconds(5), .seconds(5), .zero])
        #expect(caught.map(\.status) == [200, 429, 200])
    }

    @Test func `spells an identifier of its own in small letters everywhere, and a provider's as it is`() throws {
        fixture.catcher.start(.all)
        let made = try #require(try connected.ask(fields)?.fields["apns-id"])
        #expect(made == made.lowercased() && fixture.post.envelopes.last?.notification.id.description == made)
        let given = "2F7CA8F4-3B5C-4f4e-9F0E-6C0E4D2D2C11"
        #expect(try connected.ask(fields + [("apns-id", given)])?.fields["apns-id"] == given)
        #expect(caught.map(\.id) == [given, made])
    }

    @Test func `does not name the sender of a request without a valid token`() throws {
        _ = try connected.ask(fields)
        fixture.catcher.start(.all)
        _ = try connected.ask(fields.filter { $0.0 != "authorization" })
        let message = try #require(caught.first)
        #expect(message.reason == "MissingProviderToken" && message.sender == nil)
    }

    @Test func `keeps only the apps that are asked for`() throws {
        fixture.catcher.start(.topics([topic("com.example.else")]))
        _ = try connected.ask(fields)
        #expect(caught.isEmpty)
        fixture.catcher.start(.topics([topic("com.example.app")]))
        _ = try connected.ask(fields)
        #expect(caught.count == 1)
    }

    @Test func `reads the tag of the payload`() throws {
        fixture.catcher.start(.all)
        _ = try connected.ask(fields, body: Array(#"{"aps":{},"herald":{"tag":"inner"}}"#.utf8))
        _ = try connected.ask(fields, body: Array(#"{"aps":{},"herald":{"tag":7}}"#.utf8))
        #expect(caught.map(\.tag) == [nil, "inner"])
    }

    @Test(
        arguments: [
            (.silence(isAccepted: false), "gets no answer"), (.drop, "gets no answer"),
            (.reset(isAccepted: false), "INTERNAL_ERROR"), (.refuseStream, "may be sent again"),
            (.silence(isAccepted: true), "deliver"), (.reset(isAccepted: true), "deliver"),
        ] as [(Drill.Kind, String)]
    )
    func `keeps a request without an answer, and what a drill did to it`(kind: Drill.Kind, words: String) throws {
        fixture.catcher.start(.all)
        #expect(fixture.drills.start(Drill(kind: kind, duration: .seconds(60), seed: 1)) != nil)
        #expect(try connected.ask(fields) == nil)
        let message = try #require(caught.first)
        #expect(message.status == nil && message.reason == nil && message.answered == nil)
        #expect(message.sender == .key(fixture.key.id) && message.id != nil)
        let explanation = try #require(message.explanation)
        #expect(explanation.contains(words), "\(explanation)")
    }

    @Test func `keeps a drill's own status and reason`() throws {
        fixture.catcher.start(.all)
        for reason in ["a \"tea\"", nil] {
            let kind = Drill.Kind.refuseAs(status: 418, reason: reason, retryAfter: .seconds(3))
            #expect(fixture.drills.start(Drill(kind: kind, first: 1, duration: .seconds(60), seed: 1)) != nil)
            _ = try connected.ask(fields)
            let message = try #require(caught.first)
            #expect(message.status == 418 && message.reason == reason && message.retryAfter == 3)
            #expect(message.answered == fixture.now && message.explanation?.contains("refuses it") == true)
        }
    }

    @Test func `keeps notifications of the binary interface, with their status`() async throws {
        let certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
        let bench = try BinaryBench(fixture, certificate: certificate)
        let catcher = bench.connection.service.gateway.catcher
        catcher.start(.all)
        try bench.receive(
            try fixture.notification(1, priority: .conserving, payload: #"{"aps":{},"herald":{"tag":"t"}}"#)
        )
        try bench.receive(try fixture.notification(2, payload: "{"))
        let messages = catcher.messages().messages
        #expect(messages.map(\.status) == [128, 0])
        #expect(messages.map(\.tag) == [nil, "t"])
        #expect(messages.last?.headers["apns-priority"] == "5" && messages.first?.reason == "BadPayload")
        #expect(messages.allSatisfy { $0.interface == .binary && $0.topic?.name == "com.example.app" })
    }
}
