import ArgumentParser
import Foundation
import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct SendTests {
    private static let token = String(repeating: "0a", count: 32)
    private let now = WallTime(seconds: 1_700_000_000)

    private func request(_ arguments: String...) throws -> PushRequest {
        let options = try SendOptions.parse([Self.token, "--topic", "com.example.app"] + arguments)
        return try SendRequest(options, now: now).request
    }

    private func payload(_ arguments: String...) throws -> String {
        let options = try SendOptions.parse([Self.token, "--topic", "com.example.app"] + arguments)
        return String(decoding: try SendRequest(options, now: now).request.payload, as: UTF8.self)
    }

    @Test func `a text alone is a string`() throws {
        #expect(try payload("--alert", "Dinner \"now\" / ü") == #"{"aps":{"alert":"Dinner \"now\" / ü"}}"#)
    }

    @Test func `a text with a title is a dictionary`() throws {
        #expect(try payload("--alert", "b", "--title", "t") == #"{"aps":{"alert":{"body":"b","title":"t"}}}"#)
    }

    @Test func `a title alone is a dictionary`() throws {
        #expect(try payload("--title", "t") == #"{"aps":{"alert":{"title":"t"}}}"#)
    }

    @Test func `badge and sound stand beside the words`() throws {
        #expect(try payload("--badge", "0", "--sound", "default") == #"{"aps":{"badge":0,"sound":"default"}}"#)
    }

    @Test func `a background push says that there is something to fetch, at priority 5`() throws {
        let request = try request("--push-type", "background")
        #expect(String(decoding: request.payload, as: UTF8.self) == #"{"aps":{"content-available":1}}"#)
        #expect(request.priority == .conserving)
    }

    @Test func `a file is sent byte for byte`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("{ \"aps\" : {} }\n", to: "p.json")
        #expect(try payload("--payload", path) == "{ \"aps\" : {} }\n")
    }

    @Test(arguments: [
        ("[]", "not a JSON object"), ("{", "is not JSON"), ("", "is not JSON"),
        (#"{"aps":{},}"#, "line 1, byte 11: } after a comma: a key is missing"),
    ])
    func `a file that no app could read is not sent`(text: String, words: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "p.json")
        let error = try #require(throws: CommandError.self) { try payload("--payload", path) }
        #expect(error.message.contains(words))
    }

    @Test func `the size that is allowed depends on the type`() throws {
        let text = String(repeating: "x", count: 4500)
        let error = try #require(throws: CommandError.self) { try payload("--alert", text) }
        #expect(error.message.contains("has at most 4096"))
        #expect(try request("--alert", text, "--push-type", "voip").payload.count > 4500)
    }

    @Test func `the topic's suffix says the type`() throws {
        let options = try SendOptions.parse([Self.token, "--topic", "com.example.app.voip", "--alert", "x"])
        #expect(try SendRequest(options, now: now).request.pushType == .voip)
    }

    @Test(arguments: [
        (nil, Expiration.unspecified), ("0", .once), ("1700000500", .at(WallTime(seconds: 1_700_000_500))),
        ("1h", .at(WallTime(seconds: 1_700_003_600))), ("30s", .at(WallTime(seconds: 1_700_000_030))),
    ])
    func `an expiration is a moment, nothing, or a span from now`(text: String?, expected: Expiration) throws {
        #expect(try SendRequest.expiration(text, now: now) == expected)
    }

    @Test(arguments: [
        ["--alert", "x", "--expiration", "soon"], ["--alert", "x", "--expiration", "1795355123000"],
        ["--alert", "x", "--expiration=-1"],
        ["--alert", "x", "--priority", "7"],
        ["--alert", "x", "--priority", "266"], ["--alert", "x", "--push-type", "Alert"],
        ["--alert", "x", "--collapse-id", String(repeating: "x", count: 65)], ["--alert", "x", "--collapse-id", ""],
        ["--alert", "x", "--payload", "file"], [],
        ["--alert", ""], ["--alert", "x", "--title", ""], ["--alert", "x", "--sound", ""],
    ])
    func `wrong usage is found before anything is sent`(arguments: [String]) throws {
        #expect(throws: ValidationError.self) {
            let options = try SendOptions.parse([Self.token, "--topic", "com.example.app"] + arguments)
            return try SendRequest(options, now: now)
        }
    }

    @Test(arguments: ["", "0", "0a0", String(repeating: "0g", count: 32), String(repeating: "0a", count: 101)])
    func `a device token has 1 to 100 bytes in hexadecimal digits`(token: String) {
        #expect(throws: ValidationError.self) {
            let options = try SendOptions.parse([token, "--topic", "com.example.app", "--alert", "x"])
            return try SendRequest(options, now: now)
        }
    }

    @Test(arguments: [
        [], ["--key", "AuthKey_ABCDE12345.p8"], ["--key", "k.p8", "--team", "TEAM123456"],
        ["--certificate", "c.pem", "--key", "k.p8"], ["--certificate", "c.pem", "--team", "TEAM123456"],
    ])
    func `a sender is named in one way`(arguments: [String]) throws {
        let options = try SendOptions.parse([Self.token, "--topic", "com.example.app"] + arguments)
        #expect(throws: ValidationError.self) { try options.credential() }
    }

    @Test func `what is not typed comes from the environment and the file, in this order`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(
            "topic: com.example.file\nbadge: 3\nkey: k.p8\nkey-id: ABCDE12345\nteam: TEAM123456\napi-port: 7\n",
            to: "send.yaml"
        )
        let environment = ["HERALD_TOPIC": "com.example.variable", "HERALD_PUSH_TYPE": "voip", "HERALD_PRIORITY": "5"]
        let options = try SendOptions.parse([Self.token, "--priority", "10", "--config", file])
            .completed(environment: environment)
        #expect(options.topic == "com.example.variable")
        #expect(options.pushType == "voip")
        #expect(options.priority == 10)
        #expect(options.badge == 3)
        #expect([options.key, options.keyId, options.team] == ["k.p8", "ABCDE12345", "TEAM123456"])
    }

    @Test func `what is typed keeps from elsewhere what it excludes`() throws {
        let environment = [
            "HERALD_KEY": "k.p8", "HERALD_TEAM": "TEAM123456", "HERALD_PAYLOAD": "p.json",
            "HERALD_CERTIFICATE": "c.pem",
        ]
        let byCertificate = try SendOptions.parse([Self.token, "--certificate", "mine.pem", "--alert", "x"])
            .completed(environment: environment)
        #expect([byCertificate.certificate, byCertificate.key, byCertificate.team] == ["mine.pem", nil, nil])
        #expect(byCertificate.payload == nil)
        let byKey = try SendOptions.parse([Self.token, "--key", "mine.p8", "--payload", "-"])
            .completed(environment: environment.merging(["HERALD_ALERT": "x"]) { $1 })
        #expect([byKey.certificate, byKey.key, byKey.team] == [nil, "mine.p8", "TEAM123456"])
        #expect(byKey.alert == nil)
    }

    @Test func `the environment is a name of the service`() throws {
        func host(_ arguments: String...) throws -> String {
            try PeerOptions.parse(arguments).service(defaultPort: 2197, listener: \.api).service.host
        }
        #expect(try host("--environment", "sandbox") == "sandbox.localhost")
        #expect(try host("--environment", "sandbox", "--service", "push.example.com") == "sandbox.push.example.com")
        #expect(try host("--environment", "sandbox", "--service", "a.sandbox.example") == "a.sandbox.example")
        #expect(try host("--environment", "sandbox", "--service", "Development.example") == "Development.example")
        #expect(try host("--environment", "sandbox", "--service", "api.push.apple.com") == "api.sandbox.push.apple.com")
        #expect(try host("--environment", "production", "--service", "push.example.com") == "push.example.com")
        #expect(throws: ValidationError.self) { try host("--environment", "sandbox", "--service", "127.0.0.1:1") }
    }

    @Test func `a data folder that is not there is told, unless it is not needed`() throws {
        func complete(_ arguments: String...) throws {
            var peer = try PeerOptions.parse(arguments + ["--data", "/nowhere/data"])
            try peer.complete(from: try peer.settings(environment: [:]))
        }
        let error = try #require(throws: CommandError.self) { try complete() }
        #expect(error.message.contains("there is no data folder at /nowhere/data"))
        try complete("--service", "localhost", "--ca", "ca.pem")
    }

    @Test func `a key that no command has stops it`() throws {
        let file = try TemporaryFolder().write("topics: com.example.app\n", to: "send.yaml")
        let options = try SendOptions.parse([Self.token, "--config", file])
        #expect(throws: CommandError(.configuration, "")) { try options.completed(environment: [:]) }
    }

    @Test func `the key's identifier may stand in its file's name`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("pem", to: "AuthKey_ABCDE12345.p8")
        chmod(path, 0o600)
        let options = try SendOptions.parse(
            [Self.token, "--topic", "com.example.app", "--key", path, "--team", "TEAM123456"]
        )
        #expect("\(try options.credential())" == "key ABCDE12345 of team TEAM123456")
    }

    @Test func `a refusal is one line that says why`() throws {
        let answer = try answer(410, #"{"reason":"Unregistered","timestamp":1700000000123}"#)
        guard case .refused(let refusal) = answer else { return }
        #expect(
            SendReport.words(for: refusal)
                == "refused with 410 Unregistered since 2023-11-14T22:13:20.123Z: the app was removed from the device; "
                + "forget the device token"
        )
    }

    @Test func `what a service says is escaped`() throws {
        guard case .refused(let refusal) = try answer(400, #"{"reason":"A\nB","explanation":"\u001b[31m"}"#) else {
            return
        }
        #expect(SendReport.words(for: refusal) == "refused with 400 A\\nB: \\u{1b}[31m")
    }

    private func answer(_ status: Int, _ body: String) throws -> PushAnswer {
        try PushAnswer(status: status, field: { _ in "id" }, body: Array(body.utf8))
    }
}
