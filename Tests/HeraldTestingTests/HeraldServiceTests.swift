import Foundation
import HeraldModel
import HeraldPhone
import HeraldProvider
import Testing

@testable import HeraldTesting

/// The real binary as a test's service.
@Suite(.timeLimit(.minutes(5))) struct HeraldServiceTests {
    private static let app = "com.example.chat"
    /// On a busy machine everything takes longer.
    static let patience = Duration.seconds(240)

    /// A sender, as a backend team would have one.
    private func send(
        _ text: String,
        to token: DeviceToken,
        through herald: HeraldService,
        tag: String? = nil
    ) async throws -> PushAnswer {
        let key = try await herald.providerKey(topics: Self.app)
        var configuration = ProviderConfiguration(
            host: herald.host,
            port: herald.apiPort,
            credential: .key(pem: key.pem, id: key.id, team: key.team)
        )
        configuration.authorities = try herald.authority()
        configuration.retry = ProviderRetry.never
        configuration.timeout = Self.patience
        configuration.totalTimeout = Self.patience
        configuration.connections.pingTimeout = Self.patience
        let topic = try #require(Topic(Self.app))
        let token = try #require(PushToken(token.hex))
        return try await withProviderClient(configuration) { client in
            var request = try PushRequest(token: token, topic: topic, payload: Payload(text))
            request.tag = tag
            return try await client.send(request)
        }
    }

    @Test func `a device shows what a sender sends, in the language of its user`() async throws {
        let herald = try await HeraldService.shared()
        try await herald.withDevice { device in
            let token = try await device.install(Self.app, within: Self.patience)
            guard case .accepted(let receipt) = try await send("Dinner is ready", to: token, through: herald) else {
                Issue.record("refused")
                return
            }
            let record = try await device.next(for: Self.app, within: Self.patience)
            #expect(record.body == "Dinner is ready" && record.shown && record.apnsID == receipt.id)
            #expect(device.notifications == [record])
            // The device has it before its answer is in the journal.
            while try await !herald.run("journal", record.apnsID).contains("delivered") {}
        }
    }

    @Test(arguments: ["kitchen-test", "hall-test"])
    func `tests that run at once see the requests of their own tag`(tag: String) async throws {
        let herald = try await HeraldService.shared()
        try await herald.withDevice { device in
            let token = try await device.install(Self.app, within: Self.patience)
            _ = try await send("for \(tag)", to: token, through: herald, tag: tag)
            let caught = try await herald.caught("tag:\(tag)", wait: .seconds(60))
            #expect(caught.map(\.status) == [200] && caught.first?.topic == Self.app)
            #expect(caught.first?.payload.contains("for \(tag)") == true)
            #expect(try await herald.clearCaught("tag:\(tag)") == 1)
            #expect(try await herald.caught("tag:\(tag)", wait: .zero).isEmpty)
        }
    }

    @Test func `a sender that tries again is seen until it succeeds, and nothing follows`() async throws {
        try await withHerald { herald in
            try await herald.withDevice { device in
                let token = try await device.install(Self.app, within: Self.patience)
                try await herald.withDrill("refuse", "--reason", "InternalServerError", "--first", "2", "--for=10m") {
                    for _ in 1...3 { _ = try await send("Again", to: token, through: herald, tag: "again") }
                }
                let caught = try await herald.caught("tag:again", count: 3, until: "status:200", wait: .seconds(60))
                #expect(caught.map(\.status) == [200, 500, 500])
                #expect(caught.allSatisfy { ($0.answered ?? .distantPast) >= $0.time && !$0.device.isEmpty })
                #expect(try await herald.caughtExactly(3, "tag:again", quiet: .milliseconds(10)).count == 3)
                try await herald.caughtNothing("tag:never", within: .milliseconds(10))
                let error = await #expect(throws: HeraldTestError.self) {
                    try await herald.caughtExactly(2, "tag:again")
                }
                #expect(error?.description.hasPrefix("3 requests were caught for tag:again, and 2 are right\n") == true)
            }
        }
    }

    @Test func `a wait in vain says how the service answered`() async throws {
        let herald = try await HeraldService.shared()
        try await herald.withDevice { device in
            let token = try await device.install(Self.app, within: Self.patience)
            try await herald.withDrill("refuse", "--reason", "TooManyRequests", "--token", token.hex, "--for=10m") {
                _ = try await send("Hello", to: token, through: herald)
                let error = await #expect(throws: HeraldTestError.self) {
                    try await device.next(for: Self.app, within: .milliseconds(10))
                }
                #expect(error?.description.contains("429 TooManyRequests (drill") == true)
            }
        }
    }

    @Test func `tests that run at once each have a device of their own`() async throws {
        let herald = try await HeraldService.shared()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...3 {
                group.addTask {
                    try await herald.withDevice { device in
                        let token = try await device.install(Self.app, within: Self.patience)
                        _ = try await send("Number \(number)", to: token, through: herald)
                        #expect(try await device.next(within: Self.patience).body == "Number \(number)")
                        #expect(device.notifications.count == 1)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `a drill refuses, and ends with its test; the clock moves; the folder goes with the service`()
        async throws
    {
        let data = try await withHerald(options: ["--clock", "adjustable"]) { herald in
            try await herald.withDevice { device in
                let token = try await device.install(Self.app, within: Self.patience)
                try await herald.withDrill("refuse", "--reason", "TooManyRequests") {
                    guard case .refused(let refusal) = try await send("Hello", to: token, through: herald) else {
                        Issue.record("accepted in spite of the drill")
                        return
                    }
                    #expect(refusal.reason.known == .tooManyRequests)
                }
                guard case .accepted = try await send("Hello", to: token, through: herald) else {
                    Issue.record("refused after the drill")
                    return
                }
            }
            try await herald.run("clock", "advance", "1h")
            let certificate = String(decoding: try await herald.providerCertificate(topics: Self.app), as: UTF8.self)
            #expect(certificate.contains("PRIVATE KEY"))
            return herald.data
        }
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    @Test func `a service that does not start says why`() async throws {
        let error = await #expect(throws: HeraldTestError.self) {
            try await HeraldService.start(options: ["--journal-days", "0"])
        }
        #expect(error?.description.contains("journal-days") == true)
    }

    @Test func `a service that is not ready in time is ended, by force if it does not stop`() async throws {
        var words = ""
        // A second may be too short for the program's own words.
        for patience in [1, 16, 64] where !words.contains("waiting for the disk") {
            let folder = NSTemporaryDirectory() + UUID().uuidString
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            let program = folder + "/herald"
            try "#!/bin/sh\ntrap '' TERM\necho waiting for the disk >&2\nexec sleep 600\n"
                .write(toFile: program, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
            let error = await #expect(throws: HeraldTestError.self) {
                try await RunningService(HeraldBinary(path: program), options: [], folder: folder, patience: patience)
            }
            words = error?.description ?? ""
            #expect(words.contains("not ready after \(patience) s: "))
            #expect(!FileManager.default.fileExists(atPath: folder))
        }
        #expect(words.contains(" s: waiting for the disk"))
    }

    @Test func `a wait that is over, and a wrong name of an app, are explained`() async throws {
        let herald = try await HeraldService.shared()
        try await herald.withDevice { device in
            let late = await #expect(throws: HeraldTestError.self) { try await device.next(within: .milliseconds(1)) }
            #expect(late?.description.contains("no notification came within") == true)
            let wrong = await #expect(throws: HeraldTestError.self) { try await device.install("com example") }
            #expect(wrong?.description.contains("not the name of an app") == true)
        }
        let refused = await #expect(throws: HeraldTestError.self) { try await herald.run("journal") }
        #expect(refused?.description.contains("herald journal") == true)
    }
}
