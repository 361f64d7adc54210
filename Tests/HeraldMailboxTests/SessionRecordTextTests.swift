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
        withBroadcasts, withEnvironments,
    ]
    private static let withEnvironments = {
        var record = SessionRecord(subscriptions: ["apps/a": 1], expiryInterval: 1)
        record.environments = ["a": .sandbox, "b.c": .production]
        return record
    }()
    private static let withBroadcasts = {
        var record = SessionRecord(subscriptions: ["channels/a/b": 1], expiryInterval: 1)
        record.broadcasts = ["channels/a/b": 1_843_000_000_000_000, "channels/é": 0]
        return record
    }()

    @Test(arguments: records)
    func `the text of a session is read as it was written`(record: SessionRecord) {
        #expect(SessionRecord(text: record.text) == record)
    }

    @Test func `the text has every part of a session`() {
        // Whoever adds one has the text say it.
        #expect(Mirror(reflecting: Self.records[2]).children.count == 7)
    }

    @Test(arguments: [
        "", "\n", "production 1 - - 0", "production 1 - - 1\n", "production 1 - - 0\n\n", "elsewhere 1 - - 0\n",
        "production 4294967296 - - 0\n", "production -1 - - 0\n", "production 1  - 0\n", "production 1 - x 0\n",
        "production 1 9223372036854775808 - 0\n", "production 1 - - 0 \n", "production 1 - - 1\nsub 256 a\n",
        "production 1 - - 2\nsub 1 a\nsub 0 a\n", "production 1 - - 2\ncast 1 a\ncast 1 a\n",
        "production 1 - - 2\nin sandbox a\nin sandbox a\n", "production 1 - - 1\nsub 1 a b\n",
        "production 1 - - 1\nsub 1\n", "production 1 - - 1\nother 1 a\n", "production 1 - - 1\nin here a\n",
    ])
    func `any other text is not read`(text: String) {
        #expect(SessionRecord(text: text) == nil)
    }

    @Test func `a truncated text is not read`() {
        let text = Self.records[2].text
        for length in 0..<text.count { #expect(SessionRecord(text: String(text.prefix(length))) == nil) }
    }

    @Test(arguments: ["apps/\n/#", "apps/ /#"])
    func `a filter that no device contract has does not become another one`(filter: String) {
        let text = SessionRecord(subscriptions: [filter: 1], expiryInterval: 1).text
        #expect(SessionRecord(text: text) == nil)
    }
}
