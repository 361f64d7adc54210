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
        ("", true), ("  ", true), ("status:400", true), ("status:40", false), ("-status:200", true),
        ("-status:400", false),
        ("reason:badpayload", true), ("topic:com.example.chat device:kitchen", true),
        ("topic:com.example.chat device:hall", false),
        ("tag:\"login test\"", true), ("tag:login", false), ("-tag:other", true), ("tag:", false),
        ("provider:k7f2abcdef", true),
        ("id:2f7ca8f4-0000-0000-0000-000000000001", true), ("id:91C00000-0000-0000-0000-000000000002", true),
        ("TAG:\"Login Test\"", true), ("-tag:other -status:200", true),
    ])
    func `all terms hold`(text: String, matches: Bool) throws {
        #expect(try CaughtQuery(text).matches(entry) == matches)
    }

    @Test(arguments: ["chat", "colour:red", "-", ":", "tag:\"open", String(repeating: "tag:a ", count: 100)])
    func `what cannot be read is refused with what to write`(text: String) {
        #expect(throws: WebRefusal.self) { try CaughtQuery(text) }
    }
}
