import Foundation
import HeraldModel
import HeraldWeb
import Synchronization
import Testing

@testable import HeraldConsole

struct ChannelRoutesTests {
    private let harness = ConsoleHarness()

    /// The statuses and words of requests by a member with a role.
    private func answers(
        as role: ConsoleRole,
        _ requests: [(method: String, path: String, body: String?)]
    ) async throws -> [(status: UInt, body: String)] {
        let secret = try await harness.access.makeToken(TokenRequest(name: "ci", role: role, days: nil)).secret
        return try await harness.withPort { base in
            var answers: [(UInt, String)] = []
            for (method, path, body) in requests {
                let answer = try await harness.ask(method, base + path, token: "Bearer \(secret)", body: body)
                answers.append((answer.status, answer.body))
            }
            return answers
        }
    }

    private static func order(_ environment: String) -> String {
        #"{"topic":"com.example.app","environment":"\#(environment)","policy":1}"#
    }

    /// The channels of the stand-in, one in each environment; the second in the alphabet of addresses.
    private static let sandbox = "AAAAAAAAAAEAAAAAAAAAAQ=="
    private static let production = "AAAAAAAAAAEAAAAAAAAAAg"

    @Test func `a sender changes channels of the sandbox alone, and the audit names them`() async throws {
        let answers = try await answers(
            as: .sender,
            [
                ("POST", "/v1/channels", Self.order("sandbox")), ("POST", "/v1/channels", Self.order("production")),
                ("DELETE", "/v1/channels/AAAAAAAAAAEAAAAAAAAAAQ%3D%3D", nil),
                ("DELETE", "/v1/channels/\(Self.production)", nil),
            ]
        )
        #expect(answers.map(\.status) == [201, 403, 200, 403])
        #expect(answers[1].body.contains("ask an admin"))
        #expect(
            harness.administration.fleet.withLock { $0 } == [
                "make com.example.app sandbox 1", "delete \(Self.sandbox)",
            ]
        )
        #expect(
            harness.audit.entries.withLock { $0.map(\.target) } == [
                "\(Self.sandbox) com.example.app sandbox", "com.example.app production",
                "\(Self.sandbox) com.example.app sandbox", "\(Self.production)== com.example.app production",
            ]
        )
    }

    @Test func `an admin changes those of production, and a viewer none`() async throws {
        let requests = [
            ("POST", "/v1/channels", #"{"topic":"com.example.app","policy":0}"#),
            ("DELETE", "/v1/channels/\(Self.production)", nil as String?),
        ]
        #expect(try await answers(as: .admin, requests).map(\.status) == [201, 200])
        #expect(harness.administration.fleet.withLock { $0.first } == "make com.example.app production 0")
    }

    @Test func `a viewer changes none`() async throws {
        let requests = [
            ("POST", "/v1/channels", Self.order("sandbox")), ("DELETE", "/v1/channels/\(Self.sandbox)", nil as String?),
        ]
        #expect(try await answers(as: .viewer, requests).map(\.status) == [403, 403])
        #expect(harness.administration.fleet.withLock { $0.isEmpty })
    }

    @Test(arguments: [
        (#"{"topic":"a..b","policy":1}"#, "topic must"), (#"{"policy":1}"#, "`topic` is missing"),
        (#"{"topic":"a.b","policy":2}"#, "policy must"), (#"{"topic":"a.b"}"#, "policy must"),
        (#"{"topic":"a.b","policy":1,"environment":"both"}"#, "environment must"), ("[]", "wrong type"),
    ])
    func `an order that makes no sense is refused in words`(body: String, words: String) async throws {
        let answer = try await harness.withSocket { try await harness.ask("POST", $0 + "/v1/channels", body: body) }
        #expect(answer.status == 400)
        #expect(try answer.decode(WebFailure.self).error.contains(words))
    }

    @Test(arguments: [
        ("nothing%20like%20it", 400, "base64"), ("AAAA", 404, "no channel AAAA"),
        ("AAAAAAAAAAEAAAAAAAAABQ", 404, "no channel"),
    ])
    func `an unknown channel is not deleted`(id: String, status: Int, words: String) async throws {
        let answer = try await harness.withSocket { try await harness.ask("DELETE", $0 + "/v1/channels/" + id) }
        #expect(Int(answer.status) == status)
        #expect(try answer.decode(WebFailure.self).error.contains(words))
    }
}
