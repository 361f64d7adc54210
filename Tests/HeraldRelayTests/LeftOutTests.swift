import HeraldModel
import Testing

@testable import HeraldRelay

/// Words of commands about rows and tokens that they leave out.
@Suite(.timeLimit(.minutes(10))) struct LeftOutTests {
    private typealias Row = LeftOutRows.Row

    @Test(arguments: Engine.all) func `a named row that does not match is told with its status`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let many = try await store.queue("[\"\(Words.token)\",\"\(Words.other)\"]")
            _ = try await store.claim()
            try await store.fanOut(many, to: [Words.token, Words.other], owner: "one")
            let parts = try await store.claim()
            _ = try await store.finish(parts[0], .final(.sent, reason: nil))
            _ = try await store.finish(parts[1], .final(.refused, reason: "BadDeviceToken"))
            let queued = try await store.queue()
            let unsent = [FinalStatus.refused, .failed, .expired]
            func leftOut(_ ids: [Int64], _ statuses: [FinalStatus], _ change: RowChange) async throws -> [Row] {
                try await store.leftOut(RowSelection(ids: ids, statuses: statuses), by: change).named
            }
            let (sent, refused) = (parts[0].id, parts[1].id)
            let retried = try await leftOut([sent, refused, queued, 999], unsent, .retry)
            #expect(retried.map(\.id) == [999, sent, queued] && retried.map(\.status) == [nil, "sent", "queued"])
            let purged = try await leftOut([many, refused], FinalStatus.allCases, .purge)
            #expect(purged == [Row(id: refused, status: "refused", parent: many)])
            // The row for many tokens stands for its parts.
            #expect(try await leftOut([many], unsent, .retry).isEmpty)
            #expect(try await store.retry(RowSelection(ids: [many], statuses: unsent)) == 1)
            #expect(try await store.claim().map(\.id) == [refused, queued])
            #expect(try await leftOut([many], unsent, .retry) == [Row(id: many, status: "queued", parent: nil)])
        }
    }

    @Test(arguments: Engine.all) func `rows without a readable age are purged by their end, or counted`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let unreadable = engine.name == "SQLite" ? "soon" : "4713-01-01 BC"
            let ended = "2020-01-01 00:00:00"
            let sql = "INSERT INTO push_queue (status, time_queued, time_sent, due_at) VALUES"
            try await store.run("\(sql) ('refused', ?1, NULL, 1577836800000)", .text(unreadable))
            try await store.run("\(sql) ('sent', ?1, '\(ended)', 0)", .text(unreadable))
            try await store.run("\(sql) ('failed', ?1, NULL, 0)", .text(unreadable))
            let old = RowSelection(before: Words.now - .seconds(86_400))
            #expect(try await store.leftOut(old, by: .purge) == LeftOutRows(undated: 1))
            let purged = try await store.purge(old, isDryRun: false)
            #expect(purged.count == 2 && purged.queued == nil)
            #expect(try await store.leftOut(RowSelection(), by: .purge) == LeftOutRows())
            #expect(try await store.purge(RowSelection(statuses: [.failed]), isDryRun: false).count == 1)
        }
    }

    @Test(arguments: Engine.all) func `a named token that is not revived is told with what it is`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let dead = DeadToken(token: Words.token, topic: "com.example.chat", time: Words.now, evidence: "410")
            _ = try await store.markDead([dead], held: false)
            try await store.register(RelayDevice(token: Words.other, topic: "com.example.chat"))
            let unknown = String(repeating: "ef", count: 32)
            let tokens = [Words.token.uppercased(), Words.other, unknown]
            func leftOut(_ topic: String?) async throws -> [String] {
                try await store.leftOut(TokenSelection(tokens: tokens, topic: topic)).named
                    .map { "\($0.token.prefix(2)) \($0.isKnown) \($0.isDead)" }
            }
            #expect(try await leftOut(nil) == ["cd true false", "ef false false"])
            #expect(try await leftOut("com.example.x") == ["AB true true", "cd true false", "ef false false"])
            try await store.run(
                "UPDATE devices SET dead_at = ?1 WHERE device_token = ?2",
                .text(engine.name == "SQLite" ? "soon" : "infinity"),
                .text(Words.token)
            )
            let since = TokenSelection(since: Words.now - .seconds(60))
            #expect(try await store.leftOut(since).undated == 1)
            #expect(try await store.revive(since).tokens == 0)
            #expect(try await store.revive(TokenSelection(tokens: tokens)).tokens == 1)
        }
    }
}
