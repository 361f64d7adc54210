import CoreMetrics
import Foundation
import HeraldConsole
import HeraldModel
import HeraldWeb
import Synchronization
import Testing

@Suite struct ConsoleTests {
    let harness = ConsoleHarness()

    private var bearer: String { "Bearer \(harness.token)" }

    @Test func `a healthy service is ready`() async throws {
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/health") }
        #expect(answer.status == 200)
        #expect(answer.body == #"{"problems":[],"status":"ready"}"#)
    }

    @Test func `a service with a problem says which, and lives`() async throws {
        harness.administration.problemsHeld.withLock { $0 = ["the disk is full"] }
        let (ready, live) = try await harness.withPort { base in
            (try await harness.ask("GET", base + "/health/ready"), try await harness.ask("GET", base + "/health/live"))
        }
        #expect(ready.status == 503)
        #expect(try ready.decode(HealthReport.self) == HealthReport(problems: ["the disk is full"]))
        #expect(live.status == 200)
    }

    @Test func `drills that are on are in health, which is ready all the same`() async throws {
        harness.administration.drillsHeld.withLock { $0 = [StandInAdministration.drill] }
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/health") }
        #expect(answer.status == 200)
        #expect(
            answer.body == #"{"drills":["drill 3: drop the connection, 42 s left"],"problems":[],"status":"ready"}"#
        )
    }

    @Test func `drills are begun, listed and stopped with the token only`() async throws {
        let words = #"{"kind":"refuse","reason":"Shutdown","for":"5s","retry_after":"3s","seed":18446744073709551615}"#
        try await harness.withPort { base in
            #expect(try await harness.ask("POST", base + "/v1/drills", body: words).status == 401)
            #expect(try await harness.ask("GET", base + "/v1/drills").status == 401)
            let begun = try await harness.ask("POST", base + "/v1/drills", token: bearer, body: words)
            #expect(try begun.decode(DrillEntry.self) == StandInAdministration.drill)
            let listed = try await harness.ask("GET", base + "/v1/drills", token: bearer)
            #expect(listed.body == "[]")
            #expect(try await harness.ask("POST", base + "/v1/drills/3/stop", token: bearer).status == 200)
            #expect(try await harness.ask("POST", base + "/v1/drills/%33/stop", token: bearer).status == 200)
            #expect(try await harness.ask("POST", base + "/v1/drills/4/stop", token: bearer).status == 404)
            #expect(try await harness.ask("POST", base + "/v1/drills/x/stop", token: bearer).status == 400)
            #expect(try await harness.ask("POST", base + "/v1/drills/stop", token: bearer).body == "[]")
            #expect(try await harness.ask("POST", base + "/v1/drills", token: bearer, body: "{}").status == 400)
        }
        var wanted = DrillRequest(kind: "refuse")
        (wanted.reason, wanted.for, wanted.retryAfter, wanted.seed) = ("Shutdown", "5s", "3s", .max)
        #expect(harness.administration.drillsAsked.withLock { $0 } == [wanted])
    }

    @Test func `metrics are text for Prometheus`() async throws {
        harness.metrics.makeCounter(label: "herald_x_total", dimensions: []).increment(by: 2)
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/metrics") }
        #expect(answer.body.hasPrefix("# TYPE herald_x_total counter\nherald_x_total 2\n"))
    }

    @Test func `the requests are described to who asks`() async throws {
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/openapi.yaml") }
        #expect(answer.status == 200)
        #expect(answer.body.hasPrefix("openapi: \"3.1.0\"\n"))
    }

    @Test(arguments: [
        nil, "", "Bearer", "Bearer ", "Bearer wrong", "Bearer secret-tokem", "Basic secret-token", "secret-token",
    ])
    func `the admin API is closed to who does not know the token`(token: String?) async throws {
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/v1/status", token: token) }
        #expect(answer.status == 401)
        #expect(try answer.decode(WebFailure.self).error.contains("run/admin.token"))
        #expect(!answer.body.contains(harness.token))
    }

    @Test func `the admin API is open to who knows it`() async throws {
        let answer = try await harness.withPort { try await harness.ask("GET", $0 + "/v1/status", token: bearer) }
        #expect(answer.status == 200)
        #expect(try answer.decode(ServiceStatus.self) == harness.administration.status)
    }

    @Test(arguments: [
        ("GET", "/v1/trust/reload"), ("POST", "/v1/status"), ("PUT", "/v1/drills"), ("GET", "/v1/drills/stop"),
    ])
    func `another method of a path is answered with 405`(method: String, path: String) async throws {
        let answer = try await harness.withPort { try await harness.ask(method, $0 + path, token: bearer) }
        #expect(answer.status == 405)
        #expect(try answer.decode(WebFailure.self).error.hasPrefix("this path takes "))
    }

    @Test func `what may answer with a key is not on the port`() async throws {
        let answer = try await harness.withPort { base in
            try await harness.ask("POST", base + "/v1/control/echo", token: bearer, body: "{}")
        }
        #expect(answer.status == 404)
    }

    @Test func `the control socket asks for no token, and takes control requests`() async throws {
        let (status, echo, mode) = try await harness.withSocket { base in
            let attributes = try FileManager.default.attributesOfItem(atPath: harness.socketPath)
            return (
                try await harness.ask("GET", base + "/v1/status"),
                try await harness.ask("POST", base + "/v1/control/echo", body: #"{"a":1}"#),
                (attributes[.posixPermissions] as? NSNumber)?.intValue
            )
        }
        #expect(status.status == 200)
        #expect(echo.body == #"{"a":1}"#)
        #expect(mode == 0o600)
    }

    @Test(arguments: [
        (
            "id=00000000-0000-0001-0000-000000000002",
            JournalQuestion.notification(NotificationID(high: 1, low: 2))
        ),
        ("device=phone", DeviceID("phone").map(JournalQuestion.device)),
        ("topic=com.example.app&limit=1", Topic("com.example.app").map(JournalQuestion.topic)),
    ])
    func `the journal answers by notification, device or topic`(query: String, expected: JournalQuestion?) async throws
    {
        let answer = try await harness.withSocket { try await harness.ask("GET", $0 + "/v1/journal?" + query) }
        #expect(answer.status == 200)
        #expect(harness.administration.questions.withLock { $0 } == [expected])
        #expect(try answer.decode([JournalEntry].self).count == (query.contains("limit") ? 1 : 2))
    }

    @Test(arguments: [
        "", "id=x", "notification=00000000-0000-0001-0000-000000000002", "device=a/b", "topic=a..b", "device=a&topic=b",
        "device=a&limit=0",
        "device=a&limit=10001",
        "device=a&limit=many", "device=",
    ])
    func `a journal request that makes no sense is refused in words`(query: String) async throws {
        let answer = try await harness.withSocket { try await harness.ask("GET", $0 + "/v1/journal?" + query) }
        #expect(answer.status == 400)
        #expect(try !answer.decode(WebFailure.self).error.isEmpty)
    }

    @Test func `an entry has the state's words and its reason apart`() throws {
        let entry = StandInAdministration.entry
        #expect(entry.state == "stored")
        #expect(entry.reason == "device offline")
        #expect(entry.time == "2023-11-14T22:13:20.123Z")
        #expect((entry.device, entry.topic) == ("phone", "com.example.app"))
        #expect(entry.replacement == nil)
    }

    @Test(arguments: [("", 200, 2), ("?topic=com.example.app&limit=5", 200, 2), ("?topic=com.example.none", 200, 0)])
    func `channels are listed, of one app or of all`(query: String, status: Int, count: Int) async throws {
        let answer = try await harness.withSocket { try await harness.ask("GET", $0 + "/v1/channels" + query) }
        #expect(Int(answer.status) == status)
        let expected = StandInAdministration.channels.prefix(count)
        #expect(try answer.decode(Page<ChannelEntry>.self) == Page(items: Array(expected), next: nil))
    }

    @Test(arguments: ["topic=a..b", "limit=0", "limit=many"])
    func `a request for channels that makes no sense is refused in words`(query: String) async throws {
        let answer = try await harness.withSocket { try await harness.ask("GET", $0 + "/v1/channels?" + query) }
        #expect(answer.status == 400)
        #expect(try !answer.decode(WebFailure.self).error.isEmpty)
    }

    @Test func `credentials are listed and revoked`() async throws {
        let (list, revoked, unknown) = try await harness.withSocket { base in
            (
                try await harness.ask("GET", base + "/v1/credentials"),
                try await harness.ask("POST", base + "/v1/credentials/c1/revoke"),
                try await harness.ask("POST", base + "/v1/credentials/c2/revoke")
            )
        }
        #expect(try list.decode(Page<CredentialEntry>.self).items == [StandInAdministration.credential])
        #expect(try revoked.decode(CredentialEntry.self).id == "c1")
        #expect(unknown.status == 404)
        #expect(try unknown.decode(WebFailure.self).error == "there is no credential c2")
    }

    @Test func `a failure inside is an answer too`() async throws {
        let (list, revoked) = try await harness.withSocket { base in
            (
                try await harness.ask("GET", base + "/v1/devices"),
                try await harness.ask("POST", base + "/v1/devices/a/revoke")
            )
        }
        #expect(try list.decode(Page<DeviceEntry>.self).items == [StandInAdministration.device])
        #expect(revoked.status == 500)
    }

    @Test func `trust is reloaded`() async throws {
        let answer = try await harness.withSocket { try await harness.ask("POST", $0 + "/v1/trust/reload") }
        #expect(answer.status == 200)
        #expect(harness.administration.reloads.withLock { $0 } == 1)
    }

    @Test func `the clock is read and moved`() async throws {
        let (before, after) = try await harness.withSocket { base in
            (
                try await harness.ask("GET", base + "/v1/clock"),
                try await harness.ask("POST", base + "/v1/clock/advance", body: #"{"seconds":1.5}"#)
            )
        }
        #expect(try before.decode(ClockReading.self).milliseconds == 100_000)
        #expect(try after.decode(ClockReading.self).milliseconds == 101_500)
    }

    @Test func `the clock is accepted`() async throws {
        let answer = try await harness.withSocket { try await harness.ask("POST", $0 + "/v1/clock/accept") }
        #expect(try answer.decode(ClockReading.self).jumpSeconds == 7200)
        #expect(answer.body.contains("\"jump_seconds\":7200"))
    }

    @Test(arguments: ["", "{}", "[]", #"{"seconds":"1"}"#, #"{"seconds":1e300}"#, #"{"seconds":-1e10}"#, "\u{0}"])
    func `a body that makes no sense is refused`(body: String) async throws {
        let answer = try await harness.withSocket {
            try await harness.ask("POST", $0 + "/v1/clock/advance", body: body)
        }
        #expect(answer.status == 400)
    }

    @Test func `a body that is too long is refused`() async throws {
        let body = String(repeating: "x", count: 70_000)
        let answer = try await harness.withSocket {
            try await harness.ask("POST", $0 + "/v1/clock/advance", body: body)
        }
        #expect(answer.status == 413)
    }

    @Test(arguments: [
        ("GET", "/x"), ("GET", "/v2/status"), ("POST", "/health"), ("GET", "/v1/journal/x/y"),
        ("GET", "/metrics/../v1"),
    ])
    func `what is not there is answered as such`(method: String, path: String) async throws {
        let answer = try await harness.withSocket { try await harness.ask(method, $0 + path) }
        #expect(answer.status == 404)
        #expect(try !answer.decode(WebFailure.self).error.isEmpty)
    }

    @Test func `an occupied port is an error that says so`() async throws {
        let error = try await harness.withPort { base in
            let port = try #require(Int(base.split(separator: ":").last ?? ""))
            return await #expect(throws: WebListenerError.self) {
                try await harness.console(port: port).port { _ in }.run()
            }
        }
        #expect(error?.message.contains("is in use by another program") == true)
    }
}
