import Foundation
import HeraldMailbox
import HeraldModel
import Testing

struct SessionRecordTextTests {
    private static let records = [
        SessionRecord(expiryInterval: 0),
        SessionRecord(subscriptions: ["apps/com.example.chat/#": 1], expiryInterval: .max, environment: .sandbox),
        SessionRecord(
            subscriptions: ["apps/a/#": 1, "apps/a/token": 0, "apps/é": 255],
            expiryInterval: 3600,
            disconnected: WallTime(milliseconds: 1_800_000_000_000),
            tokenKey: 7
        ),
        SessionRecord(expiryInterval: 1, disconnected: WallTime(milliseconds: .min), tokenKey: .max),
        SessionRecord(expiryInterval: 1, disconnected: WallTime(milliseconds: .max)),
        withBroadcasts,
    ]
    private static let withBroadcasts = {
        var record = SessionRecord(subscriptions: ["channels/a/b": 1], expiryInterval: 1)
        record.broadcasts = ["channels/a/b": 1_843_000_000_000_000, "channels/é": 0]
        return record
    }()

    @Test(arguments: records)
    func `the plain form is JSON, and is read as it was written`(record: SessionRecord) throws {
        let text = try #require(record.plainText)
        #expect(SessionRecord(plainText: text) == record)
        #expect(try JSONDecoder().decode(SessionRecord.self, from: Data(text.utf8)) == record)
    }

    @Test(arguments: records)
    func `Foundation's text is read, in any order of keys`(record: SessionRecord) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let text = String(decoding: try encoder.encode(record), as: UTF8.self)
        #expect(SessionRecord(plainText: text) == record)
    }

    @Test func `a session with apps of another environment has no plain form`() throws {
        var record = Self.records[2]
        record.environments = ["a": .sandbox]
        #expect(record.plainText == nil)
        let data = try JSONEncoder().encode(record)
        #expect(SessionRecord(plainText: String(decoding: data, as: UTF8.self).replacing("\\/", with: "/")) == nil)
        #expect(try JSONDecoder().decode(SessionRecord.self, from: data) == record)
    }

    @Test func `the plain form has every part of a session`() {
        // Whoever adds one has the plain form write it, or refuse the session as it does for environments.
        #expect(Mirror(reflecting: Self.records[2]).children.count == 7)
    }

    @Test(arguments: ["apps/\"/#", "apps/\\/#", "apps/\n/#", "\u{0}"])
    func `a filter that needs JSON escapes has no plain form`(filter: String) {
        #expect(SessionRecord(subscriptions: [filter: 1], expiryInterval: 1).plainText == nil)
    }

    @Test(arguments: [
        "", "{", "{}", "null", "[]", "\"", "{\"expiryInterval\":1",
        // Something is missing, too much, or too large.
        #"{"environment":"production","expiryInterval":1}"#,
        #"{"environment":"production","subscriptions":{}}"#,
        #"{"expiryInterval":1,"subscriptions":{}}"#,
        #"{"environment":"elsewhere","expiryInterval":1,"subscriptions":{}}"#,
        #"{"environment":"production","expiryInterval":4294967296,"subscriptions":{}}"#,
        #"{"environment":"production","expiryInterval":-1,"subscriptions":{}}"#,
        #"{"environment":"production","expiryInterval":99999999999999999999,"subscriptions":{}}"#,
        #"{"disconnected":9223372036854775808,"environment":"production","expiryInterval":1,"subscriptions":{}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"a":256}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"a":1,"a":0}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"a":1,}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"a":}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"a}}"#,
        #"{"environment":"production","expiryInterval":1,"other":1,"subscriptions":{}}"#,
        #"{"environment":"production","expiryInterval":1,"subscriptions":{}}}"#,
        // JSON, and somebody else's to read.
        #"{"environment":"production","expiryInterval":1,"subscriptions":{"apps\/a\/#":1}}"#,
        #"{ "environment":"production","expiryInterval":1,"subscriptions":{}}"#,
        #"{"disconnected":null,"environment":"production","expiryInterval":1,"subscriptions":{}}"#,
    ])
    func `any other text is not read`(text: String) {
        #expect(SessionRecord(plainText: text) == nil)
    }

    @Test func `a truncated text is not read`() throws {
        let text = try #require(Self.records[2].plainText)
        for length in 0..<text.count { #expect(SessionRecord(plainText: String(text.prefix(length))) == nil) }
    }
}
