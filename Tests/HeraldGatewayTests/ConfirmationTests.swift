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

    private func push(to app: App, token: String? = nil, key: TestProviderKey? = nil) throws -> String? {
        let connected = try Connected(fixture)
        try connected.open()
        let changes: [(String, String?)] = [
            ("authorization", try fixture.bearer(key)), ("apns-topic", app.topic.name),
        ]
        let answer = try connected.ask(RawPeer.fields(token: token ?? self.token, changes))
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

    // MARK: - Trust of other nodes

    /// A token of a known app under a key that another node has just made.
    private func tokenOfNewKey() throws -> String {
        var ring = try fixture.trust.folder.tokenKeys()
        try ring.rotate(now: fixture.now)
        fixture.apps.late.changeTrust { [seal = fixture.trustService.seal, ring] in seal.replaceKeys(ring) }
        let slot = Slot(device: DeviceNumber(7), app: AppNumber(1))
        return TokenSeal(keys: ring).seal(TokenContents(slot: slot, generation: 1)).hex
    }

    @Test func `a token under a key that another node has just made is good`() throws {
        #expect(try push(to: KnownApps.chat, token: tokenOfNewKey()) == "200")
    }

    @Test func `it needs a new app too: both are learned`() throws {
        var ring = try fixture.trust.folder.tokenKeys()
        try ring.rotate(now: fixture.now)
        fixture.apps.late.make(KnownApps.chat, number)
        fixture.apps.late.changeTrust { [seal = fixture.trustService.seal, ring] in seal.replaceKeys(ring) }
        let slot = Slot(device: DeviceNumber(7), app: number)
        let token = TokenSeal(keys: ring).seal(TokenContents(slot: slot, generation: 1)).hex
        #expect(try push(to: KnownApps.chat, token: token) == "200")
    }

    @Test func `a forged token is refused once the keys of the other nodes are known, and else answered 503`() throws {
        let forged = String(repeating: "5a", count: 32)
        #expect(try push(to: KnownApps.chat, token: forged) == "BadDeviceToken")
        fixture.apps.late.fail()
        #expect(try push(to: KnownApps.chat, token: forged) == "ServiceUnavailable")
        #expect(try push(to: KnownApps.chat, token: tokenOfNewKey()) == "ServiceUnavailable")
    }

    @Test func `the binary interface takes a token under a key that another node has just made`() async throws {
        let certificate = try fixture.der(try await fixture.trust.provider("com.example.app").pem)
        let bench = try BinaryBench(fixture, certificate: certificate)
        let token = try tokenOfNewKey()
        try bench.receive(try fixture.notification(1) + fixture.notification(2, token: token) + fixture.notification(3))
        #expect(try bench.answer() == nil)
        #expect(Set(bench.posted) == ["00000001", "00000002", "00000003"])
    }

    @Test func `a provider key that another node has just made is good, and one that no node has is refused`()
        async throws
    {
        let key = try await fixture.trust.providerKey("com.example.app")
        #expect(try push(to: KnownApps.chat, token: fixture.token(KnownApps.chat), key: key) == "InvalidProviderToken")
        fixture.apps.late.changeTrust { [service = fixture.trustService] in _ = service.reload(nil) }
        #expect(try push(to: KnownApps.chat, token: fixture.token(KnownApps.chat), key: key) == "200")
        let later = try await fixture.trust.providerKey("com.example.app")
        fixture.apps.late.fail()
        #expect(try push(to: KnownApps.chat, token: fixture.token(KnownApps.chat), key: later) == "ServiceUnavailable")
    }

    @Test func `a topic that another node has just given to the team is its own`() async throws {
        let topics = fixture.trust.folder.topics
        func give(to team: String) async throws -> TrustService.LedgerReading {
            _ = try await topics.claim([KnownApps.chat.topic], for: team, takesOver: true, now: fixture.now)
            return await fixture.trustService.readLedger()
        }
        let key = try await fixture.trust.providerKey(team: "TEAM00000A")
        _ = fixture.trustService.reload(try await give(to: "TEAM00000B"))
        let token = fixture.token(KnownApps.chat)
        #expect(try push(to: KnownApps.chat, token: token, key: key) == "TopicDisallowed")
        let ledger = try await give(to: "TEAM00000A")
        fixture.apps.late.changeTrust { [service = fixture.trustService] in _ = service.reload(ledger) }
        #expect(try push(to: KnownApps.chat, token: token, key: key) == "200")
    }

    @Test func `a node that has stood still learns which keys are revoked before it accepts`() async throws {
        fixture.apps.late.standStill(.trust)
        let token = fixture.token(KnownApps.chat)
        #expect(try push(to: KnownApps.chat, token: token) == "200")
        _ = try await fixture.trust.folder.providers.revoke(fixture.key.id, now: fixture.now)
        fixture.apps.late.changeTrust { [service = fixture.trustService] in _ = service.reload(nil) }
        #expect(try push(to: KnownApps.chat, token: token) == "InvalidProviderToken")
        fixture.apps.late.fail()
        #expect(try push(to: KnownApps.chat, token: token) == "ServiceUnavailable")
    }

    /// The state of a cluster that is never learned.
    private struct SilentNodes: SharedState {
        func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {}
        func isBehind(_ part: SharedPart) -> Bool { false }
    }

    @Test func `forged tokens take a limited number of confirmations, and none of other requests`() {
        let confirmations = RefusalConfirmations(shared: SilentNodes(), clock: fixture.trust.clock)
        let confirmed = (0..<2000).count { _ in confirmations.confirm(.trust) { _ in } }
        #expect(confirmed == 1024)
        #expect(confirmations.confirm(.registrations(of: DeviceNumber(1))) { _ in })
    }
}
