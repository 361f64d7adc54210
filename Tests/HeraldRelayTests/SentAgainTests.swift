import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

/// Rows whose `time_sent` another program sets to NULL, and rows without a topic, on both databases.
@Suite struct SentAgainTests {
    @Test(arguments: Engine.all) func `a sent row without a time is queued again`(_ engine: Engine) async throws {
        try await engine.with { store in
            let (id, refused) = (try await store.queue(), try await store.queue(Words.other))
            let rows = try await store.claim()
            _ = try await store.finish(rows[0], .final(.sent, reason: nil))
            _ = try await store.finish(rows[1], .final(.refused, reason: "BadDeviceToken"))
            try await store.run("UPDATE push_queue SET time_sent = NULL")
            let again = try await store.claim()
            // Only what was sent is sent again, as a notification of its own.
            #expect(again.map(\.id) == [id])
            let row = try #require(again.first)
            #expect(row.apnsID != nil && row.apnsID != rows[0].apnsID && row.attempts == 0 && !row.isUncertain)
            #expect(try await store.column("status", of: refused).text == "refused")
            #expect(try await store.finish(row, .final(.sent, reason: nil)) == [FinishedRow(row: id, status: .sent)])
            #expect(try await store.claim().isEmpty)
        }
    }

    @Test(arguments: Engine.all) func `a sent row for many tokens is split again`(_ engine: Engine) async throws {
        try await engine.with { store in
            let tokens = [Words.token, Words.other]
            let id = try await store.queue("[\"\(Words.token)\",\"\(Words.other)\"]")
            func sendParts(_ count: Int) async throws {
                let parts = try await store.claim()
                #expect(parts.count == count && parts.allSatisfy { $0.parent == id })
                for part in parts { _ = try await store.finish(part, .final(.sent, reason: nil)) }
                #expect(try await store.column("status", of: id).text == "sent")
            }
            _ = try await store.claim()
            try await store.fanOut(id, to: tokens, owner: "one")
            try await sendParts(2)
            // All rows at once: the original counts.
            try await store.run("UPDATE push_queue SET time_sent = NULL")
            #expect(try await store.claim().map(\.id) == [id])
            try await store.fanOut(id, to: tokens, owner: "one")
            try await sendParts(2)
            // One of its parts alone: the original waits for it.
            try await store.run("UPDATE push_queue SET time_sent = NULL WHERE device_token = ?1", .text(Words.other))
            #expect(try await store.column("status", of: id).text == "queued")
            try await sendParts(1)
        }
    }

    @Test(arguments: Engine.all) func `an older queue gets the trigger`(_ engine: Engine) async throws {
        try await engine.with { store in
            let table = engine.name == "SQLite" ? "" : " ON push_queue"
            try await store.run("DROP TRIGGER push_queue_resend\(table)")
            try await store.prepare()
            let id = try await store.queue()
            let row = try #require(try await store.claim().first)
            _ = try await store.finish(row, .final(.sent, reason: nil))
            try await store.run("UPDATE push_queue SET time_sent = NULL")
            #expect(try await store.claim().map(\.id) == [id])
        }
    }

    @Test(arguments: Engine.all) func `a row without a topic gets the relay's only one`(_ engine: Engine) async throws {
        try await engine.with { store in
            let named = try await store.queue(topic: "com.example.other")
            let (bare, empty) = (try await store.queue(), try await store.queue(topic: ""))
            try await store.run("UPDATE push_queue SET topic = NULL WHERE id = ?1", .int(bare))
            let dead = DeadToken(token: Words.token, topic: "com.example.chat", time: Words.now, evidence: "410")
            _ = try await store.markDead([dead], held: false)
            var request = ClaimRequest(limit: 9, owner: "one", now: Words.now, leaseEnd: Words.now + .seconds(60))
            request.topic = "com.example.chat"
            let rows = try await store.claim(request)
            #expect(rows.map(\.id) == [named, bare, empty])
            #expect(rows.map { $0[.topic].text } == ["com.example.other", "com.example.chat", "com.example.chat"])
            #expect(rows.map { $0.device?.isDead } == [nil, true, true])
            for id in [bare, empty] { #expect(try await store.column("topic", of: id).text == "com.example.chat") }
        }
    }

    @Test func `a relay with several topics has no only one`() {
        func app(_ topics: String...) -> RelayApp {
            RelayApp(
                name: "herald",
                topics: topics,
                environment: .production,
                service: RelayApp.apple(.production),
                credential: .certificate(pem: [])
            )
        }
        #expect(RelayApp.onlyTopic(of: [app("com.example.chat")]) == "com.example.chat")
        // Development and production of one app.
        #expect(RelayApp.onlyTopic(of: [app("com.example.chat"), app("com.example.chat")]) == "com.example.chat")
        #expect(RelayApp.onlyTopic(of: [app("com.example.chat", "com.example.other")]) == nil)
        #expect(RelayApp.onlyTopic(of: [app("com.example.chat"), app("com.example.other")]) == nil)
        #expect(RelayApp.onlyTopic(of: [app("com.example.chat"), app()]) == nil)
        #expect(RelayApp.onlyTopic(of: []) == nil)
    }
}
