import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import HeraldWire
import Testing

@testable import HeraldGateway

/// Refusals that wait for what other nodes of a cluster know, over both interfaces.
@Suite struct ConfirmationTests {
    private let fixture: Fixture
    private let number = AppNumber(77)
    private let token: String

    init() async throws {
        fixture = try await Fixture()
        fixture.confirmations = RefusalConfirmations(shared: fixture.apps.late, clock: fixture.trust.clock)
        let slot = Slot(device: DeviceNumber(7), app: number)
        token = fixture.trustService.seal.seal(TokenContents(slot: slot, generation: 1)).hex
    }

    private func push(to app: App) throws -> String? {
        let connected = try Connected(fixture)
        try connected.open()
        let changes: [(String, String?)] = [
            ("authorization", try fixture.bearer()), ("apns-topic", app.topic.name),
        ]
        let answer = try connected.ask(RawPeer.fields(token: token, changes))
        guard let answer, answer.status != "200" else { return answer?.status }
        return answer.body.split(separator: "\"").dropFirst(3).first.map(String.init)
    }

    @Test func `a token for an app that another node has just made is good`() throws {
        fixture.apps.late.make(KnownApps.chat, number)
        #expect(try push(to: KnownApps.chat) == "200")
        #expect(fixture.post.envelopes.map(\.notification.slot.app) == [number])
    }

    @Test func `a token for an app that no node knows is refused`() throws {
        #expect(try push(to: KnownApps.chat) == "BadDeviceToken")
    }

    @Test func `a token for another app that another node has just made is of another topic`() throws {
        fixture.apps.late.make(App(topic: topic("com.example.other"), environment: .production), number)
        #expect(try push(to: KnownApps.chat) == "DeviceTokenNotForTopic")
    }

    @Test func `a token for an unknown app is answered 503 while the other nodes cannot be heard`() throws {
        fixture.apps.late.fail()
        #expect(try push(to: KnownApps.chat) == "ServiceUnavailable")
    }

    @Test func `the binary interface waits too, and keeps the order`() async throws {
        let certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
        fixture.apps.late.make(KnownApps.chat, number)
        let bench = try BinaryBench(fixture, certificate: certificate)
        try bench.receive(try fixture.notification(1) + fixture.notification(2, token: token) + fixture.notification(3))
        #expect(try bench.answer() == nil)
        #expect(Set(bench.posted) == ["00000001", "00000002", "00000003"])
    }

    @Test func `the binary interface refuses what no node knows`() async throws {
        let certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
        let bench = try BinaryBench(fixture, certificate: certificate)
        try bench.receive(try fixture.notification(1) + fixture.notification(2, token: token) + fixture.notification(3))
        #expect(try bench.answer() == BinaryErrorResponse(.invalidToken, identifier: 2))
    }
}
