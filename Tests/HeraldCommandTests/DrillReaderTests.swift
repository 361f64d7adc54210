import ArgumentParser
import HeraldGateway
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldCommand
@testable import HeraldConsole
@testable import HeraldService

@Suite struct DrillReaderTests {
    private static let slot = Slot(device: DeviceNumber(7), app: AppNumber(1))

    private func read(_ words: String, knows: Bool = true) throws -> Drill {
        let request = try DrillOptions.parse(words.split(separator: " ").map(String.init)).request
        return try DrillReader.drill(request) { _ in knows ? Self.slot : nil }
    }

    @Test func `every kind is read`() throws {
        #expect(try read("refuse --reason Unregistered").kind == .refuse(.unregistered, retryAfter: nil))
        #expect(
            try read("refuse --reason toomanyrequests --retry-after 30s").kind
                == .refuse(.tooManyRequests, retryAfter: .seconds(30))
        )
        #expect(try read("latency --latency 500ms").kind == .latency(.milliseconds(500) ... .milliseconds(500)))
        #expect(try read("latency --latency 200ms..2s").kind == .latency(.milliseconds(200) ... .seconds(2)))
        #expect(try read("silence").kind == .silence(isAccepted: false))
        #expect(try read("silence --accepted").kind == .silence(isAccepted: true))
        #expect(try read("refuse --status 502").kind == .refuseAs(status: 502, reason: nil, retryAfter: nil))
        #expect(
            try read("refuse --status 410 --reason unregistered --retry-after 2s").kind
                == .refuseAs(status: 410, reason: "unregistered", retryAfter: .seconds(2))
        )
        #expect(try read("reset").kind == .reset(isAccepted: false))
        #expect(try read("reset --accepted").kind == .reset(isAccepted: true))
        #expect(try read("refuse-stream").kind == .refuseStream)
        #expect(try read("goaway --two-step --reason Shutdown").kind == .goAway(.shutdown, isTwoStep: true))
        #expect(try read("goaway").kind == .goAway(nil))
        #expect(try read("goaway --reason Shutdown").kind == .goAway(.shutdown))
        #expect(try read("streams").kind == .streams(1, period: nil))
        #expect(try read("streams --streams 9 --every 5s").kind == .streams(9, period: .seconds(5)))
        #expect(try read("drop").kind == .drop)
        #expect(try read("shutdown").kind == .shutdown)
    }

    @Test func `whom it hits and for how long is read`() throws {
        let usual = try read("drop")
        #expect((usual.share, usual.target, usual.duration) == (1, .everybody, .seconds(60)))
        let drill = try read("drop --share 12.5% --topic com.example.app --for 1h --seed 18446744073709551615")
        #expect((drill.share, drill.duration, drill.seed) == (0.125, .seconds(3600), .max))
        let topic = try #require(Topic("com.example.app"))
        #expect(drill.target == .topic(topic))
        let token = String(repeating: "ab", count: 32)
        #expect(try read("drop --token \(token)").target == .slot(Self.slot))
        #expect(throws: DrillMistake.self) { try read("drop --token \(token)", knows: false) }
        #expect(throws: DrillMistake.self) { try read("drop --topic com.example.app --token \(token)") }
    }

    @Test func `how many times, and a lease, are read`() throws {
        #expect(try read("drop").first == nil)
        #expect(try read("refuse --reason Forbidden --first 2").first == 2)
        let lease = try read("drop --lease 30s")
        #expect(lease.isLease && lease.duration == .seconds(30))
        #expect(try !read("drop --for 30s").isLease)
        let unknown = try #require(throws: DrillMistake.self) { try read("explode") }
        #expect(unknown.text.hasPrefix("\"explode\" is not a kind of drill: the kinds are refuse, "))
    }

    @Test(arguments: [
        "drop --first 0", "drop --first 1000001", "streams --first 1", "drop --lease 61s", "drop --lease 30s --for 1m",
        "drop --lease 0s",
        "explode", "refuse", "refuse --reason Nothing", "latency", "latency --latency 2s..1s",
        "latency --latency 1..2..3",
        "latency --latency ..", "latency --latency 601s", "drop --share 20", "drop --share 0%", "drop --share nan%",
        "drop --share=-5%", "drop --share inf%", "drop --for 61m", "drop --for 0s", "drop --for 1y",
        "streams --streams 0", "streams --streams 1001", "streams --every 1s", "streams --topic com.example.app",
        "drop --reason Forbidden", "silence --retry-after 3s", "goaway --latency 1s", "drop --accepted",
        "refuse --status 399", "refuse --status 600", "refuse --status=-1", "goaway --status 500", "reset --two-step",
        "refuse-stream --accepted", "goaway --accepted", "reset --reason Forbidden",
        "refuse --status 500 --reason \(String(repeating: "e", count: 101))",
    ])
    func `what cannot be is refused in words`(words: String) throws {
        let mistake = try #require(throws: DrillMistake.self) { try read(words) }
        #expect(!mistake.text.isEmpty && !mistake.text.contains("\n"))
    }

    @Test func `an empty reason is refused, and the description has every kind`() throws {
        var request = DrillRequest(kind: "refuse")
        request.reason = ""
        #expect(throws: DrillMistake.self) { try DrillReader.check(request) }
        request.status = 500
        let mistake = try #require(throws: DrillMistake.self) { try DrillReader.check(request) }
        #expect(mistake.text == "a reason has 1 to 100 bytes: leave it out for an answer without a body")
        let kinds = JSON.array(Drill.Kind.names.map { .string($0) })
        #expect(DrillRequest.members["kind"]?.rules["enum"] == kinds)
        #expect(DrillEntry.members["kind"]?.rules["enum"] == kinds)
    }

    @Test func `a drill of the configuration needs its duration`() throws {
        #expect(try DrillOptions.configured("drop --for 10m").for == "10m")
        let error = try #require(throws: CommandError.self) { try DrillOptions.configured("drop") }
        #expect(error.message.contains("needs its duration"))
        let wrong = try #require(throws: CommandError.self) { try DrillOptions.configured("drop --fro 10m") }
        #expect(wrong.code == .configuration && !wrong.message.contains("\n"))
    }
}
