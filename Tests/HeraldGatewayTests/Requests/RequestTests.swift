import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import Testing

@testable import HeraldGateway

/// One request through the whole connection, by token unless a certificate is given.
@Suite
struct `a request` {
    let fixture: Fixture

    init() async throws {
        fixture = try await Fixture()
    }

    private func ask(
        _ changes: [(String, String?)] = [],
        body: [UInt8] = Array(#"{"aps":{}}"#.utf8),
        certificate: [UInt8]? = nil
    ) throws -> Answer? {
        let connected = try Connected(fixture, certificate: certificate)
        try connected.open()
        var fields = try fixture.fields()
        for (name, value) in changes { fields = Self.changed(fields, name, value) }
        return try connected.ask(fields, body: body)
    }

    static func changed(_ fields: [(String, String)], _ name: String, _ value: String?) -> [(String, String)] {
        guard let index = fields.firstIndex(where: { $0.0 == name }) else {
            return value.map { fields + [(name, $0)] } ?? fields
        }
        var fields = fields
        if let value { fields[index].1 = value } else { fields.remove(at: index) }
        return fields
    }

    private func reason(_ answer: Answer?) -> String {
        guard let answer else { return "no answer" }
        guard answer.status != "200" else { return "200" }
        let reason = answer.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? answer.body
        return "\(answer.status ?? "") \(reason)"
    }

    @Test func `is accepted with its own identifier and no other field`() throws {
        let id = "F4121b12-E0BF-3266-F079-D9253E98BF49"
        let answer = try #require(try ask([("apns-id", id)]))
        #expect(answer == Answer(fields: [":status": "200", "apns-id": id], body: "", frames: 1, isEnded: true))
        let notification = try #require(fixture.post.envelopes.first?.notification)
        #expect(notification.id == NotificationID(id))
        #expect(notification.uniqueID != notification.id)
        #expect(notification.slot == Slot(device: DeviceNumber(7), app: AppNumber(1)))
        #expect(notification.payload == Array(#"{"aps":{}}"#.utf8))
        #expect(notification.priority == .immediate)
        #expect(notification.pushType == .alert)
        #expect(notification.collapseID == nil)
        #expect(notification.storedUntil == fixture.now + .seconds(30 * 86_400))
    }

    @Test func `without an identifier is given one in lower case`() throws {
        let id = try #require(try ask()?.fields["apns-id"])
        #expect(id == id.lowercased())
        #expect(NotificationID(id) == fixture.post.envelopes.first?.notification.id)
    }

    /// Every refusal that one request can provoke, each by one fault.
    @Test(
        arguments: [
            ("405 MethodNotAllowed", ":method", "GET"), ("405 MethodNotAllowed", ":method", "PUT"),
            ("404 BadPath", ":path", "/"), ("404 BadPath", ":path", "/3/device"),
            ("404 BadPath", ":path", "/4/device/ab"),
            ("404 BadPath", ":path", "/3/device/ab/cd"), ("404 BadPath", ":path", "/3/Device/ab"),
            ("403 MissingProviderToken", "authorization", nil), ("403 MissingProviderToken", "authorization", ""),
            ("403 MissingProviderToken", "authorization", "bearer"),
            ("403 MissingProviderToken", "authorization", "bearer  "),
            ("403 MissingProviderToken", "authorization", "basic YTpi"),
            ("403 InvalidProviderToken", "authorization", "bearer x"),
            ("403 InvalidProviderToken", "authorization", "Bearer a.b.c"),
            ("400 MissingDeviceToken", ":path", "/3/device/"),
            ("400 BadMessageId", "apns-id", ""), ("400 BadMessageId", "apns-id", "1"),
            ("400 BadMessageId", "apns-id", "F4121B12E0BF3266F079D9253E98BF49"),
            ("400 BadMessageId", "apns-id", "{F4121B12-E0BF-3266-F079-D9253E98BF49}"),
            ("400 BadExpirationDate", "apns-expiration", ""), ("400 BadExpirationDate", "apns-expiration", "soon"),
            ("400 BadExpirationDate", "apns-expiration", "-1"), ("400 BadExpirationDate", "apns-expiration", "1.5"),
            ("400 BadExpirationDate", "apns-expiration", "9999999999999999999999"),
            ("400 BadPriority", "apns-priority", ""), ("400 BadPriority", "apns-priority", "0"),
            ("400 BadPriority", "apns-priority", "11"), ("400 BadPriority", "apns-priority", " 10"),
            ("400 BadPriority", "apns-priority", "high"),
            ("400 InvalidPushType", "apns-push-type", ""), ("400 InvalidPushType", "apns-push-type", "Alert"),
            ("400 InvalidPushType", "apns-push-type", "silent"),
            ("400 BadCollapseId", "apns-collapse-id", String(repeating: "a", count: 65)),
            ("400 BadCollapseId", "apns-collapse-id", String(repeating: "ä", count: 33)),
            ("400 BadCollapseId", "apns-collapse-id", "a\u{7}"), ("400 BadCollapseId", "apns-collapse-id", "a\tb"),
            ("400 BadCollapseId", "apns-collapse-id", "a\u{80}"), ("400 BadCollapseId", "apns-collapse-id", "\u{9F}"),
            ("400 BadCollapseId", "apns-collapse-id", "a\(Unicode.Scalar(0xFDEF) ?? "x")"),
            ("400 BadCollapseId", "apns-collapse-id", "\(Unicode.Scalar(0xFFFF) ?? "x")"),
            ("400 BadCollapseId", "apns-collapse-id", "a\(Unicode.Scalar(0x10FFFE) ?? "x")"),
            ("400 BadCollapseId", "apns-collapse-id", " a"),
            ("400 MissingTopic", "apns-topic", nil),
            ("400 BadTopic", "apns-topic", ""), ("400 BadTopic", "apns-topic", "<com.example.app>"),
            ("400 BadTopic", "apns-topic", "com..app"),
            ("400 BadTopic", "apns-topic", String(repeating: "a", count: 201)),
            ("400 TopicDisallowed", "apns-topic", "org.elsewhere.app"),
            ("400 TopicDisallowed", "apns-push-type", "voip"),
            ("400 TopicDisallowed", "apns-push-type", "liveactivity"),
            ("400 BadDeviceToken", ":path", "/3/device/aaaa"),
            ("400 BadDeviceToken", ":path", "/3/device/" + String(repeating: "A", count: 160)),
            ("400 BadDeviceToken", ":path", "/3/device/" + String(repeating: "a", count: 200)),
            ("400 BadDeviceToken", ":path", "/3/device/" + String(repeating: "0", count: 64)),
            ("400 BadDeviceToken", ":path", "/3/device/" + String(repeating: "g", count: 64)),
            ("400 DeviceTokenNotForTopic", "apns-topic", "com.example.other"),
            ("400 BadDeviceToken", ":authority", "api.sandbox.push.apple.com"),
        ] as [(String, String, String?)]
    )
    func `is refused for one fault`(_ expected: String, _ field: String, _ value: String?) throws {
        let answer = try ask([(field, value)])
        #expect(reason(answer) == expected)
        #expect(answer?.fields["content-type"] == "application/json")
        #expect(NotificationID(answer?.fields["apns-id"] ?? "") != nil)
        #expect(answer?.frames == 2)
        #expect(fixture.post.envelopes.isEmpty)
        #expect(fixture.post.refused.map(\.id) == [NotificationID(answer?.fields["apns-id"] ?? "")])
        #expect(fixture.post.refused.first?.refusal.map { "\($0.reason.httpStatus) \($0.reason)" } == expected)
    }

    /// Two faults at a time: each refusal goes before the next.
    @Test func `with several faults is refused for the first of them`() throws {
        let voip = [UInt8](repeating: 32, count: 4097)
        let faults: [(String, [(String, String?)], [UInt8]?)] = [
            ("405 MethodNotAllowed", [(":method", "PUT")], nil),
            ("404 BadPath", [(":path", "/3/devices/x")], nil),
            ("403 MissingProviderToken", [("authorization", nil)], nil),
            ("400 MissingDeviceToken", [(":path", "/3/device/")], nil),
            ("400 BadMessageId", [("apns-id", "x")], nil),
            ("400 BadExpirationDate", [("apns-expiration", "x")], nil),
            ("400 BadPriority", [("apns-priority", "x")], nil),
            ("400 InvalidPushType", [("apns-push-type", "x")], nil),
            ("400 BadCollapseId", [("apns-collapse-id", String(repeating: "x", count: 65))], nil),
            ("400 MissingTopic", [("apns-topic", nil)], nil),
            ("413 PayloadTooLarge", [], voip),
            ("400 BadDeviceToken", [(":path", "/3/device/zz")], nil),
        ]
        for (index, first) in faults.enumerated() {
            for second in faults[(index + 1)...] {
                // Of two faults of one field only one can be there.
                let changes = second.1.filter { change in !first.1.contains { $0.0 == change.0 } } + first.1
                let body = first.2 ?? second.2 ?? Array("{}".utf8)
                #expect(reason(try ask(changes, body: body)) == first.0, "\(first.0) before \(second.0)")
            }
        }
    }

    @Test func `with a duplicate field is refused before authentication`() throws {
        let connected = try Connected(fixture)
        try connected.open()
        let doubled: [(String, String)] = [
            ("apns-id", "x"), ("apns-topic", "com.example.app"), ("apns-priority", "5"), ("authorization", "bearer x"),
            ("apns-collapse-id", "x"), ("apns-expiration", "0"), ("apns-push-type", "alert"),
        ]
        for (name, value) in doubled {
            let fields = RawPeer.fields([("authorization", nil)]) + [(name, value), (name, value)]
            #expect(reason(try connected.ask(fields)) == "400 DuplicateHeaders", "\(name)")
        }
        let fields = try fixture.fields() + [("host", "a"), ("accept", "b"), ("accept", "c")]
        #expect(reason(try connected.ask(fields)) == "200")
    }

    @Test func `has a body that is a JSON object within the limit of its push type`() throws {
        let token = fixture.token(App(topic: topic("com.example.app.voip"), environment: .production))
        let voip: [(String, String?)] = [(":path", "/3/device/" + token), ("apns-topic", "com.example.app.voip")]
        func object(_ count: Int) -> [UInt8] { [123] + [UInt8](repeating: 32, count: count - 2) + [125] }
        let cases: [(String, [UInt8], [(String, String?)])] = [
            ("400 PayloadEmpty", [], []), ("200", object(4096), []), ("413 PayloadTooLarge", object(4097), []),
            ("413 PayloadTooLarge", object(60_000), []),
            ("200", object(5120), voip + [("apns-push-type", "voip")]),
            ("413 PayloadTooLarge", object(5121), voip + [("apns-push-type", "voip")]),
            ("200", object(5120), voip + [("apns-push-type", nil)]),
            ("413 PayloadTooLarge", object(4097), voip + [("apns-push-type", "alert")]),
            ("400 BadPayload", Array("[]".utf8), []), ("400 BadPayload", Array("{".utf8), []),
            ("400 BadPayload", [123, 0xFF, 125], []), ("200", Array("{}".utf8), []),
        ]
        for (expected, body, changes) in cases {
            #expect(reason(try ask(changes, body: body)) == expected, "\(body.count) bytes, \(changes)")
        }
    }

    @Test func `with an unreadable payload is accepted and journaled if the operator allows it`() throws {
        fixture.configuration.rules.takesUnreadablePayloads = true
        #expect(reason(try ask(body: Array("not JSON".utf8))) == "200")
        #expect(fixture.post.discarded == [.discardedUndeliverable])
        #expect(reason(try ask(body: [])) == "400 PayloadEmpty")
    }

    @Test func `that is silent has priority 5 or 1, by default 5`() throws {
        let background = ("apns-push-type", Optional("background"))
        #expect(reason(try ask([background, ("apns-priority", "10")])) == "400 BadPriority")
        #expect(reason(try ask([background, ("apns-priority", "1")])) == "200")
        #expect(reason(try ask([background])) == "200")
        #expect(fixture.post.envelopes.map(\.notification.priority) == [.low, .conserving])
    }

    @Test func `has an expiration`() throws {
        let now = fixture.now
        let cases: [(String?, WallTime?)] = [
            (nil, now + .seconds(30 * 86_400)), ("0", nil), ("1", nil), ("\(now.seconds - 1)", nil),
            ("\(now.seconds + 60)", now + .seconds(60)), ("99999999999", now + .seconds(30 * 86_400)),
        ]
        for (value, expected) in cases {
            #expect(reason(try ask([("apns-expiration", value)])) == "200")
            #expect(fixture.post.envelopes.last?.notification.storedUntil == expected, "\(value ?? "absent")")
        }
    }

    @Test func `without push type has the push type of its topic`() throws {
        let app = App(topic: topic("com.example.app.push-type.liveactivity"), environment: .production)
        let changes = [
            (":path", "/3/device/" + fixture.token(app)), ("apns-topic", app.topic.name), ("apns-push-type", nil),
        ]
        #expect(reason(try ask(changes)) == "200")
        #expect(fixture.post.envelopes.last?.notification.pushType == .liveactivity)
        #expect(reason(try ask([("apns-push-type", nil), ("apns-collapse-id", "")])) == "200")
        #expect(fixture.post.envelopes.last?.notification.pushType == .alert)
        #expect(fixture.post.envelopes.last?.notification.collapseID == nil)
    }

    @Test func `accepts a device token in either case, and the word bearer in any case`() throws {
        let bearer = try fixture.bearer().replacing("bearer ", with: "BeArEr   ", maxReplacements: 1)
        let changes = [(":path", "/3/device/" + fixture.token().uppercased()), ("authorization", bearer)]
        #expect(reason(try ask(changes.map { ($0.0, Optional($0.1)) })) == "200")
    }

    @Test func `in sandbox gets apns-unique-id, too`() throws {
        let app = App(topic: topic("com.example.app"), environment: .sandbox)
        let sandbox: [(String, String?)] = [
            (":path", "/3/device/" + fixture.token(app)), (":authority", "api.sandbox.push.apple.com"),
        ]
        let id = try #require(try ask(sandbox)?.fields["apns-unique-id"])
        #expect(id == id.lowercased())
        #expect(NotificationID(id) == fixture.post.envelopes.last?.notification.uniqueID)
        #expect(try ask()?.fields["apns-unique-id"] == nil)
        fixture.configuration.rules.alwaysSendsUniqueID = true
        #expect(try ask()?.fields["apns-unique-id"] != nil)
        #expect(try ask([("apns-priority", "7")])?.fields["apns-unique-id"] == nil)
    }

    @Test func `for an unregistered token gets the timestamp`() throws {
        fixture.post.decide(.refused(.unregistered, since: WallTime(milliseconds: 1_454_948_015_990)))
        let answer = try #require(try ask())
        #expect(answer.status == "410")
        #expect(answer.body == #"{"reason":"Unregistered","timestamp":1454948015990}"#)
    }

    @Test func `that cannot be stored gets retry-after`() throws {
        fixture.post.decide(.refused(.serviceUnavailable, since: nil))
        let answer = try #require(try ask())
        #expect(answer.status == "503")
        #expect(answer.fields["retry-after"] == "10")
        #expect(answer.body == #"{"reason":"ServiceUnavailable"}"#)
    }

    @Test func `gets an explanation if it asks`() throws {
        let explain = ("herald-explain", Optional("1"))
        let refused = try #require(try ask([explain, ("apns-priority", "7")]))
        #expect(refused.body == #"{"reason":"BadPriority","explanation":"apns-priority is 10, 5 or 1"}"#)
        #expect(try ask([explain])?.fields["herald-explanation"] != nil)
        let late = try #require(try ask([explain, ("apns-expiration", "9223372036854775807")]))
        #expect(late.body.contains("of 18 digits at most"))
        #expect(try ask([("herald-explain", "0")])?.fields["herald-explanation"] == nil)
    }

    @Test func `with HEAD is refused without a body`() throws {
        let answer = try #require(try ask([(":method", "HEAD")], body: []))
        #expect(answer.status == "405")
        #expect(answer.frames == 1)
        #expect(answer.isEnded)
    }
}
