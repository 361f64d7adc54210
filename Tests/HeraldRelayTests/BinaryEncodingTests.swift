import Foundation
import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

/// Encoding of rows for the binary interface, and its journal pages.
@Suite struct BinaryEncodingTests {
    private static let alert = #"{"aps":{"alert":"hi"}}"#
    private static let silent = #"{"aps":{"content-available":1}}"#

    private func request(
        _ payload: String = alert,
        topic: String = "com.example.chat",
        type: PushType = .alert
    ) -> PushRequest {
        PushRequest(
            token: PushToken(DeviceToken(words: (1, 2, 3, 4))),
            topic: Topic(topic),
            payload: Array(payload.utf8),
            pushType: type
        )
    }

    @Test func `what it can carry is carried`() throws {
        var push = request()
        push.priority = .conserving
        push.expiration = .at(WallTime(seconds: 1_700_000_000))
        push.id = NotificationID("2f7ca8f4-0000-4000-8000-00000a0b0c0d")
        let binary = try BinaryEncoding.request(push)
        #expect(binary.token == push.token && binary.payload == push.payload)
        #expect(binary.priority == .conserving && binary.expiration == push.expiration)
        #expect(binary.identifier == 0x0A0B_0C0D)
    }

    @Test func `what it cannot say is refused, and not left out`() {
        var collapsing = request()
        collapsing.collapseID = "dinner"
        #expect(throws: RowError(.collapseIDNotCarried)) { try BinaryEncoding.request(collapsing) }
        var low = request()
        low.priority = .low
        #expect(throws: RowError(.priorityNotCarried)) { try BinaryEncoding.request(low) }
        let long = request(#"{"aps":{},"x":""# + String(repeating: "x", count: 2048) + #""}"#)
        #expect(throws: RowError(.payloadTooLarge)) { try BinaryEncoding.request(long) }
    }

    @Test func `a push type is carried where the service finds it by itself`() throws {
        #expect(throws: Never.self) { try BinaryEncoding.request(request(Self.silent, type: .background)) }
        #expect(throws: Never.self) {
            try BinaryEncoding.request(request(topic: "com.example.chat.voip", type: .voip))
        }
        #expect(throws: Never.self) {
            try BinaryEncoding.request(request(topic: "com.example.chat.voip-ptt", type: .pushtotalk))
        }
        for (payload, topic, type) in [
            (Self.alert, "com.example.chat", PushType.background), (Self.silent, "com.example.chat", .alert),
            (Self.alert, "com.example.chat", .mdm), (Self.alert, "com.example.chat.voip", .alert),
            (Self.alert, "com.example.chat.push-type.liveactivity", .liveactivity),
            (Self.alert, "com.example.chat.location-query", .location),
        ] {
            #expect(throws: RowError(.pushTypeNotCarried)) {
                try BinaryEncoding.request(request(payload, topic: topic, type: type))
            }
        }
    }

    @Test func `an app of the interface is for its certificate's topic alone`() throws {
        var app = RelayApp(
            name: "old",
            topics: ["com.example.chat"],
            environment: .production,
            service: HostPort(host: "localhost", port: 2195),
            credential: .certificate(pem: [])
        )
        let (chat, voip) = (try #require(Topic("com.example.chat")), try #require(Topic("com.example.chat.voip")))
        #expect(app.includes(chat) && app.includes(voip))
        app.interface = .binary
        #expect(app.includes(chat) && !app.includes(voip))
    }

    private func page(isWhole: Bool) throws -> BinaryJournalPage {
        let lines = #"""
            [{"id":"2f7ca8f4-0000-8000-8000-000000000001","time":"2026-11-21T12:00:00.000Z","state":"received"},
            {"id":"2f7ca8f4-0000-8000-8000-000000000001","time":"2026-11-21T12:00:00.010Z","state":"stored"},
            {"id":"2f7ca8f4-0000-8000-8000-000000000002","time":"2026-11-21T12:00:00.010Z","state":"received"},
            {"id":"2f7ca8f4-0000-4000-8000-000000000003","time":"2026-11-21T12:00:00.010Z","state":"stored"}]
            """#
        let answer = JournalLines(lines: try JSONDecoder().decode([JournalLine].self, from: Data(lines.utf8)))
        return BinaryJournalPage(answer, isWhole: isWhole)
    }

    @Test func `the journal is read by the number that its identifiers end with`() throws {
        let page = try page(isWhole: true)
        let start = WallTime(milliseconds: 0)
        #expect(page.result(of: 1, since: start) == .accepted)
        #expect(page.result(of: 2, since: start) == .pending)
        // It has the number of one that came by HTTP/2, which is not its.
        #expect(page.result(of: 3, since: start) == .notAccepted)
        #expect(page.result(of: 4, since: start) == .notAccepted)
    }

    @Test func `a page that does not reach back far enough says nothing about what it has not`() throws {
        let page = try page(isWhole: false)
        let noon = try #require(WallTime(rfc3339: "2026-11-21T12:00:00.000Z"))
        #expect(page.result(of: 1, since: noon - .seconds(3600)) == .accepted)
        #expect(page.result(of: 4, since: noon - .seconds(3600)) == .forgotten)
        // The clocks may differ by a minute.
        #expect(page.result(of: 4, since: noon + .seconds(59)) == .forgotten)
        #expect(page.result(of: 4, since: noon + .seconds(60)) == .notAccepted)
    }
}
