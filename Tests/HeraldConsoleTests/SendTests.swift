import HeraldModel
import HeraldWeb
import Testing

@testable import HeraldConsole

struct SendTests {
    private func caller(_ role: ConsoleRole) -> ConsoleCaller {
        ConsoleCaller(name: "ci", role: role, proof: .token)
    }

    @Test func `a sender sends in the sandbox, an admin in both environments`() throws {
        try PushEnvironment.sandbox.check(caller(.sender))
        try PushEnvironment.production.check(caller(.admin))
        #expect(throws: AdminError.self) { try PushEnvironment.production.check(caller(.sender)) }
        #expect(throws: AdminError.self) { try PushEnvironment.production.check(nil) }
    }

    @Test func `ten orders of a caller come at once, the next waits, and others' do not`() {
        let (start, pace) = (ContinuousClock.now, SendPace())
        let admitted = (1...30).count { _ in pace.admits(caller(.sender)) }
        // Each tenth of a second admits another.
        let more = Int((ContinuousClock.now - start) / .milliseconds(100))
        #expect((10...12 + more).contains(admitted))
        #expect(pace.admits(caller(.admin)))
    }

    private func order(_ text: String) throws -> SendOrder {
        try WebBody.json(Array(text.utf8), as: SendOrder.self)
    }

    @Test func `an order has one recipient or a list, and a payload as JSON or byte for byte`() throws {
        let one = try order(
            #"{"to":{"device":"kitchen","topic":"a.b"},"payload":{"aps":{"badge":1,"x":[1.5,null,true]}}}"#
        )
        #expect(!one.isList && one.environment == .production)
        #expect(String(decoding: one.payload, as: UTF8.self) == #"{"aps":{"badge":1,"x":[1.5,null,true]}}"#)
        let payload =
            #"{"z":[9007199254740993,18446744073709551615,1.10,1e400,-0],"a":{"\#u{E9}":1,"e\#u{301}":2},"aps":{}}"#
        let exact = try order(#"{"to":{"device":"kitchen","topic":"a.b"},"payload":\#(payload)}"#)
        #expect(String(decoding: exact.payload, as: UTF8.self).utf8.elementsEqual(payload.utf8))
        let list = try order(#"{"to":[{"token":"00","topic":"a.b"}],"environment":"sandbox","payload":"{ }"}"#)
        #expect(list.isList && list.environment == .sandbox && list.payload == Array("{ }".utf8))
    }

    @Test(arguments: [
        (
            #"{"to":{"token":"00","topic":"a.b"},"payload":{},"header":{}}"#,
            "unknown key `header`: did you mean `headers`?"
        ),
        (
            #"{"to":{"token":"00","topic":"a.b"},"payload":{},"expiration":0}"#,
            "unknown key `expiration`: the keys are to, environment, headers, payload"
        ),
        (#"{"to":{"token":"00","topics":"a.b"},"payload":{}}"#, "unknown key `to.topics`: did you mean `topic`?"),
        (
            #"{"to":[{"token":"00","topic":"a.b"},{"token":"00","topic":"a.b","devise":"x"}],"payload":{}}"#,
            "unknown key `to.devise`: did you mean `device`?"
        ),
    ])
    func `a key that an order does not have is refused, also further in`(text: String, words: String) {
        #expect(throws: WebRefusal(400, words)) { try order(text) }
    }

    @Test(arguments: [
        #"{"to":{"topic":"a.b"},"payload":{}}"#, #"{"to":{"device":"a","token":"00","topic":"a.b"},"payload":{}}"#,
        #"{"to":[],"payload":{}}"#, #"{"to":{"token":"00","topic":"a.b"}}"#,
        #"{"to":{"token":"00","topic":"a.b"},"payload":[]}"#,
        #"{"to":{"token":"00","topic":"a.b"},"payload":{},"environment":"both"}"#,
        #"{"to":{"token":"00","topic":"a.b"},"payload":{},"headers":{"apns-priority":5}}"#,
    ])
    func `what is missing or doubled is refused with what to write`(text: String) {
        #expect(throws: WebRefusal.self) { try order(text) }
    }
}
