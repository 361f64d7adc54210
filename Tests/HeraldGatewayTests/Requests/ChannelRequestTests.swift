import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldGateway
@testable import HeraldTrust

/// Requests about channels, on a connection without sockets.
struct ChannelRequestTests {
    private static let managing = "/1/apps/com.example.app/channels"
    private static let sending = "/4/broadcasts/apps/com.example.app"

    private let fixture: Fixture
    private let scene = ChannelScene()

    init() async throws {
        fixture = try await Fixture()
        fixture.channels = scene.service
        try await scene.load([(1, KnownApps.chat, .newest), (2, KnownApps.chat, .none)])
    }

    private func fields(
        _ method: String,
        _ path: String,
        _ changes: [(String, String?)] = []
    ) throws -> [(String, String)] {
        let base: [(String, String?)] = [
            (":method", method), (":path", path), ("authorization", try fixture.bearer()), ("apns-topic", nil),
            ("apns-id", nil), ("apns-expiration", nil), ("apns-priority", nil), ("apns-push-type", nil),
        ]
        return RawPeer.fields(token: "00", base + changes)
    }

    private func sendingFields(_ changes: [(String, String?)] = []) throws -> [(String, String)] {
        try fields(
            "POST",
            Self.sending,
            [
                ("apns-channel-id", ChannelScene.id(2).base64), ("apns-expiration", "0"), ("apns-priority", "10"),
                ("apns-push-type", "liveactivity"),
            ] + changes
        )
    }

    @Test func `a channel is read, and channels are listed`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let one = [("apns-channel-id", String?.some(ChannelScene.id(1).base64))]
        let answer = try #require(try connected.ask(try fields("GET", Self.managing, one), body: []))
        #expect(answer.fields[":status"] == "200")
        #expect(answer.body == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        #expect(answer.fields["apns-request-id"] != nil && answer.fields["apns-id"] == nil)
        let path = "/1/apps/com.example.app/all-channels"
        let list = try #require(try connected.ask(try fields("GET", path), body: []))
        let names = [UInt64(1), 2].map { "\"\(ChannelScene.id($0).base64)\"" }.joined(separator: ",")
        #expect(list.body == "{\"channels\":[\(names)]}")
    }

    /// The state of a cluster in which another node has just done something, or whose nodes cannot be heard.
    private struct OtherNode: SharedState {
        struct Unreachable: Error {}
        let change: (@Sendable () -> Void)?

        func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
            guard let change else { return done(.failure(Unreachable())) }
            if part == .channels { change() }
            done(.success(()))
        }

        func isBehind(_ part: SharedPart) -> Bool { false }
    }

    @Test func `a list has a channel that another node has just made, or there is none`() async throws {
        let app = try await scene.apps.withNumber(of: KnownApps.chat, for: nil) { $0 }
        let channel = BroadcastChannel(id: ChannelScene.id(3), app: app, storage: .newest, created: fixture.now)
        let others = [
            OtherNode { [service = scene.service] in service.created(StoredChannel(channel: channel, newest: nil)) },
            OtherNode(change: nil),
        ]
        let answers = try others.map { other in
            fixture.confirmations = RefusalConfirmations(shared: other, clock: fixture.trust.clock)
            let connected = try Connected(fixture)
            try connected.open()
            return try connected.ask(try fields("GET", "/1/apps/com.example.app/all-channels"), body: [])?.body
        }
        #expect(answers[0]?.contains(ChannelScene.id(3).base64) == true)
        #expect(answers[1]?.contains("ServiceUnavailable") == true)
    }

    @Test func `a broadcast that is not to be stored is accepted at once`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let answer = try #require(try connected.ask(try sendingFields()))
        #expect(answer.fields[":status"] == "200" && answer.body.isEmpty)
        #expect(NotificationID(answer.fields["apns-request-id"] ?? "") != nil)
        #expect(NotificationID(answer.fields["apns-unique-id"] ?? "") != nil)
        #expect(scene.service.feed(ChannelScene.id(2), of: KnownApps.chat)?.published == 1)
    }

    @Test func `a key that does not name the app has no channels until its team owns the topic`() async throws {
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        let key = try await fixture.trust.providerKey(team: "TEAM00000A")
        _ = await fixture.trustService.reload()
        _ = try await fixture.trust.folder.topics.claim(
            [KnownApps.chat.topic],
            for: "TEAM00000B",
            takesOver: false,
            now: fixture.now
        )
        let later = await fixture.trustService.readLedger()
        let authorization = [("authorization", String?.some(try fixture.bearer(key)))]
        let connected = try Connected(fixture)
        try connected.open()
        let list = try fields("GET", "/1/apps/com.example.app/all-channels", authorization)
        #expect(try connected.ask(list, body: [])?.body == #"{"channels":[]}"#)
        let one = authorization + [("apns-channel-id", ChannelScene.id(1).base64)]
        for method in ["GET", "DELETE"] {
            let answer = try connected.ask(try fields(method, Self.managing, one), body: [])
            #expect(answer?.body == #"{"reason":"ChannelNotRegistered"}"#)
        }
        #expect(try connected.ask(try sendingFields(authorization))?.body == #"{"reason":"ChannelNotRegistered"}"#)
        #expect(scene.service.feed(ChannelScene.id(2), of: KnownApps.chat)?.published == 0)
        _ = fixture.trustService.reload(later)
        #expect(try connected.ask(list, body: [])?.body == #"{"reason":"TopicMismatch"}"#)
    }

    @Test func `a team that owns as many topics by use as it may makes no channel for another`() async throws {
        let store = fixture.trust.store
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        let claims = (0..<TopicClaims.maximumUses).map {
            TopicClaim(topic("com.example.a\($0)"), team: "TEAM00000A", origin: .use, since: fixture.now)
        }
        try await store.claim(claims, takesOver: false)
        let key = try await fixture.trust.providerKey(team: "TEAM00000A")
        _ = await fixture.trustService.reload()
        let connected = try Connected(fixture)
        try connected.open()
        let create = try fields("POST", Self.managing, [("authorization", try fixture.bearer(key))])
        let attributes = Array(#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#.utf8)
        #expect(try connected.ask(create, body: attributes)?.body == #"{"reason":"CannotCreateChannelConfig"}"#)
    }

    /// Keys of two teams that do not name the app, whose topic no team owns; no device has registered it.
    private func teamsBeforeDevices() async throws -> [TestProviderKey] {
        _ = try await fixture.trust.folder.topics.release([KnownApps.chat.topic])
        let keys = [
            try await fixture.trust.providerKey(team: "TEAM00000A"),
            try await fixture.trust.providerKey(team: "TEAM00000B"),
        ]
        _ = await fixture.trustService.reload()
        for environment in PushEnvironment.allCases {
            fixture.apps.teams[App(topic: KnownApps.chat.topic, environment: environment)] = "TEAM00000A"
        }
        return keys
    }

    private func isClaimed() -> Bool {
        let use = TopicUse(topic: KnownApps.chat.topic, team: "TEAM00000C", isNamed: false)
        guard case .reserved(let reservation) = fixture.trustService.firstUses.reserve(use) else { return true }
        fixture.trustService.firstUses.cancel(reservation)
        return false
    }

    @Test func `before a device has the app, channels and broadcasts are served and claim nothing`() async throws {
        let keys = try await teamsBeforeDevices()
        let list = "/1/apps/com.example.app/all-channels"
        let attributes = Array(#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#.utf8)
        for (key, names) in zip(keys, [2, 0]) {
            let authorization = [("authorization", String?.some(try fixture.bearer(key)))]
            let connected = try Connected(fixture)
            try connected.open()
            // A team that did not make the first channel is told no names; it reaches the channels whose names it knows.
            #expect(try connected.ask(try sendingFields(authorization))?.fields[":status"] == "200")
            let body = try connected.ask(try fields("GET", list, authorization), body: [])?.body ?? ""
            #expect(body.split(separator: "==").count == names + 1)
            let create = try fields("POST", Self.managing, authorization)
            #expect(try connected.ask(create, body: attributes) == nil, "it waits for the store")
        }
        #expect(!isClaimed())
    }

    @Test func `once a device has the app, the team of its channels claims it by a broadcast, and others do not`()
        async throws
    {
        let keys = try await teamsBeforeDevices()
        fixture.apps.teams[App(topic: KnownApps.chat.topic, environment: .sandbox)] = nil
        func send(_ key: TestProviderKey) throws -> Answer? {
            let connected = try Connected(fixture)
            try connected.open()
            return try connected.ask(try sendingFields([("authorization", try fixture.bearer(key))]))
        }
        #expect(try send(keys[1])?.body == #"{"reason":"ChannelNotRegistered"}"#)
        #expect(!isClaimed())
        #expect(try send(keys[0]) == nil, "the answer waits for the claim")
        #expect(isClaimed())
        #expect(try send(keys[0]) == nil)
        for _ in 1...2 { fixture.trustService.firstUses.expireClaims() }
        #expect(try send(keys[0])?.body == #"{"reason":"ServiceUnavailable"}"#)
        #expect(scene.service.feed(ChannelScene.id(2), of: KnownApps.chat)?.published == 2)
    }

    @Test func `a gateway without channels broadcasts for nobody`() throws {
        fixture.channels = nil
        let connected = try Connected(fixture)
        try connected.open()
        let answer = try #require(try connected.ask(try sendingFields()))
        #expect(answer.body == #"{"reason":"FeatureNotEnabled"}"#)
    }

    @Test(arguments: [
        (BroadcastApps.only([topic("com.example.other")]), "{\"reason\":\"FeatureNotEnabled\"}"),
        (.only([]), "{\"reason\":\"FeatureNotEnabled\"}"), (.only([topic("com.example.app")]), ""), (.all, ""),
    ])
    func `which apps broadcast is the operator's to say`(apps: BroadcastApps, body: String) throws {
        fixture.configuration.rules.broadcastApps = apps
        let connected = try Connected(fixture)
        try connected.open()
        let answer = try #require(try connected.ask(try sendingFields()))
        #expect(answer.body == body)
    }

    @Test func `an unreadable broadcast is refused by a store that takes nothing, and reaches nobody`() throws {
        fixture.configuration.rules.takesUnreadablePayloads = true
        scene.store.setAccepting(false)
        let connected = try Connected(fixture)
        try connected.open()
        let answer = try #require(try connected.ask(try sendingFields(), body: Array("x".utf8)))
        #expect(answer.body == #"{"reason":"ServiceUnavailable"}"#)
        #expect(scene.service.feed(ChannelScene.id(2), of: KnownApps.chat)?.published == 0)
    }

    @Test func `a store that takes nothing is said`() throws {
        scene.store.setAccepting(false)
        let connected = try Connected(fixture)
        try connected.open()
        let answer = try #require(try connected.ask(try sendingFields()))
        #expect(answer.body == #"{"reason":"ServiceUnavailable"}"#)
        #expect(answer.fields["retry-after"] == "10")
    }
}
