import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

@Suite struct RowReaderTests {
    private func plan(_ columns: [QueueColumn: SQLValue], dead: Bool? = false) -> RowPlan {
        var values: [QueueColumn: SQLValue] = [
            .deviceToken: .text(Words.token), .topic: .text("com.example.chat"), .payload: .text(Words.payload),
            .timeQueued: StoredMoment.text(Words.now),
        ]
        values.merge(columns) { $1 }
        var device: RelayDevice?
        if dead != false {
            device = RelayDevice(token: Words.token, topic: "com.example.chat")
            device?.isDead = dead
        }
        let row = QueueRow(
            id: 1,
            apnsID: "2f7ca8f4-0d6a-4b8e-9c5e-1a2b3c4d5e6f",
            isUncertain: false,
            attempts: 0,
            parent: nil,
            device: device,
            values: QueueColumn.allCases.map { values[$0] ?? .null }[...]
        )
        return RowReader(longestLife: .seconds(86_400)).plan(row, at: Words.now)
    }

    private func order(_ columns: [QueueColumn: SQLValue]) throws -> PreparedRow {
        guard case .send(let order) = plan(columns) else { throw CancellationError() }
        return order
    }

    @Test(arguments: [
        (QueueColumn.deviceToken, SQLValue.null, "MissingDeviceToken"), (.deviceToken, .text("xyz"), "BadDeviceToken"),
        (.deviceToken, .bytes([0xFF, 0x00]), "BadDeviceToken"), (.deviceToken, .text("[]"), "BadDeviceToken"),
        (.deviceToken, .text("[1]"), "BadDeviceToken"), (.deviceToken, .int(7), "BadDeviceToken"),
        (.deviceToken, .text("abc"), "BadDeviceToken"),
        (.deviceToken, .text(String(repeating: "ab", count: 101)), "BadDeviceToken"),
        (.topic, .null, "MissingTopic"), (.topic, .text(""), "MissingTopic"), (.topic, .text("a..b"), "BadTopic"),
        (.topic, .bytes([0xC3]), "BadTopic"),
        (.payload, .null, "PayloadEmpty"), (.payload, .text(""), "PayloadEmpty"),
        (.payload, .text("hello"), "BadPayload"),
        (.payload, .text("[1]"), "BadPayload"), (.payload, .bytes([0xFF]), "BadPayload"),
        (.payload, .text("{\"a\":\"\(String(repeating: "x", count: 4096))\"}"), "PayloadTooLarge"),
        (.priority, .int(7), "BadPriority"), (.priority, .text("high"), "BadPriority"),
        (.priority, .int(.max), "BadPriority"),
        (.expiration, .text("soon"), "BadExpirationDate"), (.expiration, .int(-1), "BadExpirationDate"),
        (.expiration, .int(300), "BadExpirationDate"), (.expiration, .text("1900000000.5"), "BadExpirationDate"),
        (.expiration, .text("0.5"), "BadExpirationDate"),
        (.expiration, .text("2030-01-01 00:00:00"), "BadExpirationDate"),
        (.expiration, .text("2030-01-01T00:00:00Z"), "BadExpirationDate"),
        (.expiration, .text(""), "BadExpirationDate"),
        (.expiration, .text("1.9e9"), "BadExpirationDate"),
        (.collapseID, .text(String(repeating: "x", count: 65)), "BadCollapseId"),
        (.collapseID, .text("a\nb"), "BadCollapseId"), (.collapseID, .text("a\u{85}"), "BadCollapseId"),
        (.collapseID, .text("a\(Unicode.Scalar(0xFFFE) ?? "x")b"), "BadCollapseId"),
        (.collapseID, .text(" a"), "BadCollapseId"),
        (.pushType, .text("loud"), "InvalidPushType"), (.sendAfter, .text("soon"), "BadSendAfter"),
        (.giveUpAt, .text("never"), "BadGiveUpAt"), (.environment, .text("moon"), "BadEnvironment"),
        (.userName, .text("ann"), "BadUserName"), (.template, .text("hi"), "BadTemplate"),
        (.service, .bytes([0xFF]), "BadService"),
        // Milliseconds, durations, and years of another calendar.
        (.sendAfter, .int(1_795_000_000_000), "BadSendAfter"), (.sendAfter, .text("1795000000000.5"), "BadSendAfter"),
        (.sendAfter, .int(300), "BadSendAfter"), (.sendAfter, .text("2569-11-21 02:34:56"), "BadSendAfter"),
        (.sendAfter, .text("2026-11-21T02:34:56+25:00"), "BadSendAfter"),
        (.giveUpAt, .int(1_795_000_000_000), "BadGiveUpAt"), (.giveUpAt, .int(0), "BadGiveUpAt"),
        (.giveUpAt, .text("9999-12-31"), "BadGiveUpAt"),
        (.expiration, .int(1_795_000_000_000), "BadExpirationDate"), (.expiration, .int(.max), "BadExpirationDate"),
        (.timeQueued, .text("yesterday"), "BadTimeQueued"), (.timeQueued, .int(1_795_000_000_000), "BadTimeQueued"),
    ])
    func `a poisoned row is refused for what is wrong`(_ column: QueueColumn, _ value: SQLValue, _ reason: String) {
        guard case .final(.refused, let found) = plan([column: value]) else {
            Issue.record("not refused")
            return
        }
        #expect(found.reason.rawValue == reason && found.detail.contains("`"))
    }

    @Test func `a complete row is sent as written`() throws {
        let order = try order([
            .priority: .text("5"), .expiration: .int(1_900_000_000), .collapseID: .text("tür 1"),
            .pushType: .text("alert"),
            .environment: .text("development"), .service: .text("herald"),
        ])
        #expect(order.request.priority == .conserving && order.request.collapseID == "tür 1")
        #expect(order.request.expiration == .at(WallTime(seconds: 1_900_000_000)))
        #expect(order.environment == .sandbox && order.service == "herald")
        #expect(order.request.id != nil && order.request.payload == Array(Words.payload.utf8))
        #expect(order.deadline == Words.now + .seconds(86_400) || order.deadline.seconds == Words.now.seconds + 86_400)
    }

    @Test(arguments: [1, 31, 54, 80, 100]) func `a token of another length is sent`(_ length: Int) throws {
        let order = try order([.deviceToken: .text(String(repeating: "Ab", count: length))])
        #expect(order.request.token.bytes == [UInt8](repeating: 0xAB, count: length))
    }

    @Test func `a thousand tokens of the maximum length are fanned out`() {
        let tokens = (1000..<2000).map { String(repeating: "ab", count: 98) + "\($0)" }
        let list = "[" + tokens.map { "\"\($0)\"" }.joined(separator: ", ") + "]"
        guard case .fanOut(tokens) = plan([.deviceToken: .text(list)]) else {
            Issue.record("not spread")
            return
        }
    }

    @Test func `topic and payload imply the push type`() throws {
        #expect(try order([.topic: .text("com.example.chat.voip")]).request.pushType == .voip)
        let silent = try order([.payload: .text(#"{"aps":{"content-available":1}}"#)])
        #expect(silent.request.pushType == .background && silent.request.priority == .conserving)
        #expect(try order([:]).request.pushType == .alert)
        #expect(try order([.expiration: .int(0)]).request.expiration == .once)
    }

    @Test func `due times are respected`() {
        guard case .wait(let moment) = plan([.sendAfter: .int(Words.now.seconds + 60)]) else {
            Issue.record("does not wait")
            return
        }
        #expect(moment.seconds == Words.now.seconds + 60)
        guard case .final(.expired, _) = plan([.giveUpAt: .int(Words.now.seconds)]) else {
            Issue.record("did not expire")
            return
        }
        guard case .final(.expired, _) = plan([.timeQueued: StoredMoment.text(Words.now - .seconds(86_402))]) else {
            Issue.record("is kept for ever")
            return
        }
    }

    @Test(arguments: [0, 1, 3653]) func `a time may be ten years ahead`(_ days: Int) {
        let moment = Words.now + .seconds(days * 86_400)
        guard case .send = plan([.giveUpAt: StoredMoment.text(moment + .seconds(-1)), .timeQueued: .null]) else {
            #expect(days == 0, "is over")
            return
        }
    }

    @Test func `a row of a device without a readable time is refused`() {
        guard case .final(.refused, let error) = plan([:], dead: nil) else {
            Issue.record("sent")
            return
        }
        #expect(error.reason == .badDeviceTime)
    }

    @Test func `many tokens are fanned out`() {
        let list = "[\"\(Words.token)\", \"\(Words.token.uppercased())\", \"\(Words.other)\", \"[\"]"
        guard case .fanOut(let tokens) = plan([.deviceToken: .text(list)]) else {
            Issue.record("not spread")
            return
        }
        #expect(tokens == [Words.token, Words.other, "?"])
        let many = "[" + Array(repeating: "\"x\"", count: 1001).joined(separator: ",") + "]"
        guard case .final(.refused, RowError(.tooManyTokens)) = plan([.deviceToken: .text(many)]) else {
            Issue.record("too many were taken")
            return
        }
    }

    @Test func `a dead token is not sent to`() {
        guard case .final(.refused, RowError(.unregistered)) = plan([:], dead: true) else {
            Issue.record("sent")
            return
        }
    }
}
