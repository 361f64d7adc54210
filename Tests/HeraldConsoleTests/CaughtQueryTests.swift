import HeraldConsole
import HeraldModel
import HeraldWeb
import Testing

struct CaughtQueryTests {
    private var entry: CaughtEntry {
        var entry = CaughtEntry(
            id: "2F7CA8F4-0000-0000-0000-000000000001",
            time: "",
            environment: .production,
            interface: "http2"
        )
        (entry.topic, entry.device, entry.tag) = ("com.example.chat", "kitchen", "login test")
        (entry.status, entry.reason, entry.provider) = (400, "BadPayload", "K7F2ABCDEF")
        entry.uniqueID = "91c00000-0000-0000-0000-000000000002"
        return entry
    }

    @Test(arguments: [
        ("", true), ("  ", true), ("status:400", true), ("status:403", false), ("-status:200", true),
        ("-status:400", false),
        ("reason:badpayload", true), ("topic:com.example.chat device:kitchen", true),
        ("topic:com.example.chat device:hall", false),
        ("tag:\"login test\"", true), ("tag:login", false), ("-tag:other", true),
        ("provider:k7f2abcdef", true),
        ("id:2f7ca8f4-0000-0000-0000-000000000001", true), ("id:91C00000-0000-0000-0000-000000000002", true),
        ("TAG:\"Login Test\"", true), ("-tag:other -status:200", true),
    ])
    func `all terms hold`(text: String, matches: Bool) throws {
        #expect(try CaughtQuery(text).matches(entry) == matches)
    }

    @Test(arguments: [
        ("status:abc", "status is one of 0, 1, 2, "), ("status:999", ", 200, "), ("-status:0200", ", 200, "),
        ("id:xyz", "id is an apns-id or apns-unique-id, a UUID"), ("tag:", "tag is 1 to 64 characters"),
        ("tag:\"\"", "tag is 1 to 64 characters"),
        ("tag:\(String(repeating: "x", count: 65))", "tag is 1 to 64 characters"),
        ("reason:BadDevceToken", "did you mean `BadDeviceToken`?"), ("reason:404", "a reason like BadDeviceToken"),
        ("topic:a..b", "a topic like com.example.app"), ("device:", "a device's identifier"),
        ("provider:", "a credential's identifier"), ("status:", "status is one of"),
    ])
    func `a value that no message can have is refused with those that it can`(text: String, words: String) {
        let refusal = #expect(throws: WebRefusal.self) { try CaughtQuery("tag:a \(text)", "until") }
        let message = refusal?.message ?? ""
        #expect(message.contains(words) && message.contains("in until"), "\(message)")
    }

    @Test func `every status and reason of an answer can be asked for`() throws {
        for reason in RefusalReason.allCases {
            let text = "reason:\(reason.reason) status:\(reason.httpStatus) -status:\(reason.binaryStatus.rawValue)"
            #expect(throws: Never.self) { try CaughtQuery(text) }
        }
        #expect(throws: Never.self) { try CaughtQuery("status:0 -status:200") }
    }

    @Test func `tags are compared by code units, and terms end at scalars`() throws {
        var entry = entry
        entry.tag = "e\u{301}"
        #expect(try CaughtQuery("tag:e\u{301}").matches(entry))
        #expect(try !CaughtQuery("tag:\u{E9}").matches(entry))
        // A combining mark behind a space, a colon or a quotation mark does not hide it.
        #expect(try CaughtQuery("tag:\"e\u{301}\"\u{A0}status:400").matches(entry))
        entry.tag = "\u{301}x"
        #expect(try CaughtQuery("tag:\u{301}x\r\nstatus:400").matches(entry))
        #expect(try CaughtQuery("tag:\"\u{301}x\"").matches(entry))
        entry.tag = String(repeating: "e\u{301}", count: 32)
        #expect(try CaughtQuery("tag:\(entry.tag ?? "")").matches(entry))
    }

    @Test(arguments: ["chat", "colour:red", "-", ":", "tag:\"open", String(repeating: "tag:a ", count: 100)])
    func `what cannot be read is refused with what to write`(text: String) {
        #expect(throws: WebRefusal.self) { try CaughtQuery(text) }
    }
}
