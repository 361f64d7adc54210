import Foundation
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldProvider

@Suite struct PayloadTests {
    private func text(_ payload: Payload, _ type: PushType = .alert) throws -> String {
        String(decoding: try payload.encoded(for: type), as: UTF8.self)
    }

    @Test func `an alert with only a body is a string`() throws {
        #expect(try text(Payload("Dinner \"now\" / ü\n")) == #"{"aps":{"alert":"Dinner \"now\" / ü\n"}}"#)
    }

    @Test func `every key of an alert has its name`() throws {
        let body = Alert.Text.localized(key: "b", arguments: ["x", "y"])
        var alert = Alert(title: "t", subtitle: .localized(key: "s"), body: body)
        alert.launchImage = "i"
        alert.actionKey = "PLAY"
        let expected =
            #"{"aps":{"alert":{"title":"t","subtitle-loc-key":"s","loc-key":"b","loc-args":["x","y"],"#
            + #""launch-image":"i","action-loc-key":"PLAY"}}}"#
        #expect(try text(Payload(alert: alert)) == expected)
    }

    @Test func `every key of aps has its name`() throws {
        var payload = Payload()
        payload.badge = 0
        payload.sound = .named("beep.caf")
        payload.threadID = "thread"
        payload.category = "INVITE"
        payload.isContentAvailable = true
        payload.isMutable = true
        payload.targetContentID = "window"
        payload.interruptionLevel = .timeSensitive
        payload.relevanceScore = 0.5
        payload.filterCriteria = "work"
        payload.isContentChanged = true
        payload.urlArguments = ["a", "b"]
        let expected =
            #"{"aps":{"badge":0,"sound":"beep.caf","thread-id":"thread","category":"INVITE","content-available":1,"#
            + #""mutable-content":1,"target-content-id":"window","interruption-level":"time-sensitive","#
            + #""relevance-score":0.5,"filter-criteria":"work","content-changed":true,"url-args":["a","b"]}}"#
        #expect(try text(payload) == expected)
    }

    @Test func `a critical sound is a dictionary`() throws {
        var payload = Payload()
        payload.sound = .critical(name: "siren.caf", volume: 0.75)
        #expect(try text(payload) == #"{"aps":{"sound":{"critical":1,"name":"siren.caf","volume":0.75}}}"#)
        payload.sound = .critical(volume: .infinity)
        #expect(throws: ProviderError.self) { try text(payload) }
    }

    private struct Score: Codable {
        let home: Int
        let away: Int
    }

    @Test func `a Live Activity has its state and times, and localized texts as objects`() throws {
        let now = WallTime(seconds: 1_700_000_000)
        var activity = try LiveActivity(
            starting: "MatchAttributes",
            attributes: ["name": "Final"],
            contentState: Score(home: 1, away: 0),
            timestamp: now
        )
        activity.staleDate = now + .seconds(60)
        activity.asksForToken = true
        activity.channel = "Y2hhbm5lbA=="
        var payload = Payload(alert: Alert(title: "Goal", body: .localized(key: "SCORED", arguments: ["Ann"])))
        payload.liveActivity = activity
        payload.sound = .default
        let expected =
            #"{"aps":{"alert":{"title":"Goal","body":{"loc-key":"SCORED","loc-args":["Ann"]},"sound":"default"},"#
            + #""event":"start","timestamp":1700000000,"content-state":{"away":0,"home":1},"stale-date":1700000060,"#
            + #""attributes-type":"MatchAttributes","attributes":{"name":"Final"},"input-push-token":1,"#
            + #""input-push-channel":"Y2hhbm5lbA=="}}"#
        #expect(try text(payload, .liveactivity) == expected)
    }

    @Test func `custom data stand beside aps`() throws {
        let payload = Payload("hi")
        let encoded = try payload.encoded(for: .alert, custom: Score(home: 1, away: 0))
        #expect(String(decoding: encoded, as: UTF8.self) == #"{"aps":{"alert":"hi"},"away":0,"home":1}"#)
        let empty = try payload.encoded(for: .alert, custom: [String: Int]())
        #expect(empty == Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    }

    @Test func `numbers and keys of custom data stay as they are`() throws {
        let text = #"{"b":[18446744073709551615,9007199254740993,1.10,1e400,-0],"a":{"\#u{E9}":1,"e\#u{301}":2}}"#
        let json = try JSON(Array(text.utf8))
        let encoded = try Payload().encoded(for: .alert, custom: json)
        #expect(encoded == Array(#"{"aps":{},\#(text.dropFirst())"#.utf8))
        var state = Payload()
        state.liveActivity = try LiveActivity(contentState: json, timestamp: WallTime(seconds: 1))
        let activity = String(decoding: try state.encodedForBroadcast(), as: UTF8.self)
        #expect(activity.utf8.contains(#""content-state":\#(text)}"#.utf8))
    }

    @Test func `custom data are encoded as Foundation's encoder has them`() throws {
        struct Custom: Encodable {
            let page = URL(string: "https://example.com/a?b=c")
            let price = Decimal(string: "1234567890123456789.25")
            let big = UInt64.max
            let small = Int64.min
            let half = 0.5
            let bytes = Data([1, 2, 255])
            let moment = Date(timeIntervalSinceReferenceDate: 1.25)
            let key = UUID()
        }
        let custom = Custom()
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let expected = #"{"aps":{},"# + String(decoding: try encoder.encode(custom), as: UTF8.self).dropFirst()
        #expect(String(decoding: try Payload().encoded(for: .alert, custom: custom), as: UTF8.self) == expected)
    }

    @Test func `custom data that cannot stand beside aps are refused`() {
        #expect(throws: ProviderError.self) { try Payload("hi").encoded(for: .alert, custom: ["aps": 1]) }
        #expect(throws: ProviderError.self) { try Payload("hi").encoded(for: .alert, custom: ["aps": Int?.none]) }
        #expect(throws: ProviderError.self) { try Payload("hi").encoded(for: .alert, custom: [1, 2]) }
        #expect(throws: ProviderError.self) { try Payload("hi").encoded(for: .alert, custom: 7) }
        #expect(throws: ProviderError.self) { try Payload("hi").encoded(for: .alert, custom: ["x": Double.nan]) }
    }

    @Test(arguments: PushType.allCases)
    func `the size is checked to the byte`(type: PushType) throws {
        let frame = #"{"aps":{"alert":""}}"#.utf8.count
        let longest = String(repeating: "x", count: type.maximumPayloadBytes - frame)
        #expect(try Payload(longest).encoded(for: type).count == type.maximumPayloadBytes)
        #expect(throws: ProviderError.self) { try Payload(longest + "x").encoded(for: type) }
    }

    @Test(arguments: ["", "\u{0}\u{1f}\u{7f}", "\\\"", "𝄞", "\u{2028}"])
    func `every text is encoded losslessly`(words: String) throws {
        let encoded = try Payload(words).encoded(for: .alert)
        let object = try JSONSerialization.jsonObject(with: Data(encoded)) as? [String: [String: String]]
        #expect(object?["aps"]?["alert"] == words)
    }
}
