import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldScreen
import NIOHTTP1
import Testing

@Suite struct ScreenTests {
    let harness = ScreenHarness()

    @Test func `the page and all its files are in the binary`() async throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources")
        let folder = sources.appending(path: "Device/HeraldScreen/Resources")
        let shared = sources.appending(path: "Shared/HeraldWeb/Resources")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        #expect(names.count > 20)
        try await harness.withScreen { base in
            let page = try await harness.ask("GET", base + "/")
            #expect(page.status == 200)
            #expect(page.fields.first(name: "content-type") == "text/html; charset=utf-8")
            let index = try String(contentsOf: folder.appending(path: "index.html"), encoding: .utf8)
            #expect(page.body == index)
            for name in names where name != "index.html" && !name.hasSuffix(".txt") {
                let answer = try await harness.ask("GET", base + "/assets/" + name)
                #expect(answer.status == 200, "\(name)")
                let file = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
                #expect(answer.body == file)
            }
            for name in try FileManager.default.contentsOfDirectory(atPath: shared.path()) {
                let answer = try await harness.ask("GET", base + "/assets/" + name)
                #expect(try answer.body == String(contentsOf: shared.appending(path: name), encoding: .utf8))
            }
            let nothing = try await harness.ask("GET", base + "/assets/..%2FPackage.swift")
            #expect(nothing.status == 404)
            #expect(nothing.body == #"{"error":"there is nothing at this path"}"#)
        }
    }

    @Test func `each answer has security headers`() async throws {
        let answers = try await harness.withScreen { base in
            [
                try await harness.ask("GET", base + "/"), try await harness.ask("GET", base + "/api/device"),
                try await harness.ask("GET", base + "/nothing"),
                try await harness.ask("GET", base + "/api/apps/com.example.app/icon"),
            ]
        }
        for answer in answers {
            let policy = answer.fields.first(name: "content-security-policy") ?? ""
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; "))
            #expect(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"))
            #expect(answer.fields.first(name: "x-content-type-options") == "nosniff")
            #expect(answer.fields.first(name: "cache-control") == "no-store")
            #expect(answer.fields.first(name: "cross-origin-resource-policy") == "same-origin")
            #expect(answer.fields.first(name: "access-control-allow-origin") == nil)
        }
    }

    @Test func `the device's snapshot is JSON`() async throws {
        harness.device.change { $0.locked = true }
        let answer = try await harness.withScreen { try await harness.ask("GET", $0 + "/api/device") }
        #expect(answer.status == 200)
        #expect(answer.fields.first(name: "content-type") == "application/json")
        let snapshot = try JSON.decode(PhoneSnapshot.self, from: Array(answer.body.utf8))
        let present = await harness.device.snapshot()
        #expect(snapshot == present)
    }

    @Test func `actions reach the device`() async throws {
        let answers = try await harness.withScreen { base in
            let charset: HTTPHeaders = ["content-type": "application/json; charset=utf-8", "origin": base]
            return [
                try await harness.act(base, #"{"do":"unlock"}"#),
                try await harness.act(base, #"{"do":"permit","topic":"com.example.app","allow":["badge"]}"#),
                try await harness.act(base, #"{"do":"tap","id":"n1"}"#, fields: charset),
            ]
        }
        #expect(answers.map(\.status) == [204, 204, 204])
        let app = try #require(Topic("com.example.app"))
        #expect(harness.device.deeds == [.unlock, .permit(app, [.badge]), .tap(id: "n1")])
    }

    @Test(arguments: [
        ("", 400, "is not a JSON object"),
        ("[]", 400, "is not a JSON object"),
        (#"{"do":"dance"}"#, 400, #"\"do\" must be one of"#),
        (#"{"do":"tap"}"#, 400, #"needs the text \"id\""#),
        (#"{"do":"set","locked":7}"#, 400, "must be true or false"),
        (#"{"do":"install","path":"/tmp/x.app"}"#, 400, "herald agent install"),
        (#"{"do":"cancel","topic":"a.b","id":5}"#, 400, #"with \"notification\", not with"#),
        (#"{"do":"cancel","topic":"a.b","notification":5}"#, 400, #"needs the text \"notification\""#),
        (#"{"do":"tap","id":"n9"}"#, 409, "there is no notification n9"),
        (
            #"{"do":"act","id":"n1","action":"a","text":""# + String(repeating: "x", count: 70_000) + #""}"#, 413,
            "65536"
        ),
    ])
    func `a refused action has an explanation`(body: String, status: UInt, words: String) async throws {
        let answer = try await harness.withScreen { try await harness.act($0, body) }
        #expect(answer.status == status)
        #expect(answer.body.contains(words), "\(answer.body)")
        #expect(harness.device.deeds.isEmpty)
    }

    @Test func `pages of other sites can neither read nor act`() async throws {
        let unlock = #"{"do":"unlock"}"#
        try await harness.withScreen { base in
            // A name of the attacker's that leads to this machine.
            for host in ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "192.0.2.7", ""] {
                let answer = try await harness.ask("GET", base + "/api/device", fields: ["host": host])
                #expect(answer.status == 421, "\(host)")
                #expect(!answer.body.contains("languages"))
            }
            for host in ["localhost", "phone.localhost:8080", "LOCALHOST:1", "127.9.9.9", "[::1]:99"] {
                #expect(
                    try await harness.ask("GET", base + "/api/device", fields: ["host": host]).status == 200,
                    "\(host)"
                )
            }
            for origin in ["http://evil.example", "null", "https://evil.example", "http://127.0.0.1:1"] {
                #expect(try await harness.act(base, unlock, fields: ["origin": origin]).status == 403, "\(origin)")
            }
            for type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
                #expect(try await harness.act(base, unlock, fields: ["content-type": type]).status == 415, "\(type)")
            }
        }
        #expect(harness.device.deeds.isEmpty)
    }

    @Test func `the display log is read from a revision on`() async throws {
        let harness = { [harness] in
            var harness = harness
            harness.configuration.sendLine = "curl {token}"
            return harness
        }()
        try await harness.withScreen { base in
            let all = try await harness.ask("GET", base + "/api/shown?limit=5")
            #expect(all.status == 200 && all.body.contains(#""count":1"#) && all.body.contains(#""revision":4"#))
            #expect(all.body.contains(MadeUpDevice.seen.description))
            let news = try await harness.ask("GET", base + "/api/shown?after=4")
            #expect(news.body.contains(#""records":[]"#))
            for query in ["after=-1", "after=x", "limit=0", "limit=1001", "afer=4", "after=4&after=5"] {
                #expect(try await harness.ask("GET", base + "/api/shown?" + query).status == 400, "\(query)")
            }
            #expect(try await harness.ask("GET", base + "/api/send").body == #"{"line":"curl {token}"}"#)
        }
    }

    @Test func `a display record is found by its apns-id`() async throws {
        let seen = MadeUpDevice.seen.description
        try await harness.withScreen { base in
            let answer = try await harness.ask("GET", base + "/api/shown/" + seen)
            #expect(answer.status == 200)
            #expect(answer.body.contains(#""badge":{"after":1,"before":1}"#))
            let other = try await harness.ask(
                "GET",
                base + "/api/shown/" + NotificationID(high: 3, low: 4).description + "?wait=2.5"
            )
            #expect(other.status == 404)
            #expect(other.body.contains("within 2.5 seconds"))
            #expect(try await harness.ask("GET", base + "/api/shown/nonsense").status == 404)
            for wait in ["-1", "301", "nan", "soon"] {
                #expect(try await harness.ask("GET", base + "/api/shown/\(seen)?wait=\(wait)").status == 400, "\(wait)")
            }
        }
        #expect(harness.device.waits == [.zero, .milliseconds(2500), .zero])
    }

    @Test func `the media type follows the content, not the name`() async throws {
        try await harness.withScreen { base in
            let icon = try await harness.ask("GET", base + "/api/apps/com.example.app/icon")
            #expect(icon.status == 200)
            #expect(icon.fields.first(name: "content-type") == "image/svg+xml")
            let sound = try await harness.ask("GET", base + "/api/apps/com.example.app/sounds/a%20%C3%BC.aiff")
            #expect(sound.fields.first(name: "content-type") == "audio/aiff")
            let image = try await harness.ask("GET", base + "/api/apps/com.example.app/images/a%20%C3%BC.png")
            #expect(image.fields.first(name: "content-type") == "image/png")
            for path in [
                "com.example.app/images/none.png", "com.example.other/icon", "com.example.app/sounds/none.wav",
                "no%20topic/icon",
            ] {
                #expect(try await harness.ask("GET", base + "/api/apps/" + path).status == 404, "\(path)")
            }
        }
    }
}
