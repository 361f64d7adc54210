import Testing

@testable import HeraldRelay

/// A statement that takes long is not a hang of the queue.
@Suite(.timeLimit(.minutes(10))) struct LongStatementTests {
    @Test func `a probe is answered while a statement before it makes progress`() async throws {
        try await Engine.all[0].with { store in
            let database = store.database
            let statement = Task {
                // It ends only when it is cancelled.
                try await database.read { session in
                    try session.runOnce(
                        "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT max(n) FROM number",
                        []
                    )
                    .rows.count
                }
            }
            let start = database.progressCount
            while database.progressCount == start { await Task.yield() }
            let (answers, answer) = AsyncStream.makeStream(of: Void.self)
            let probe = Task { await store.probe { answer.yield() } }
            for await _ in answers { break }
            statement.cancel()
            await #expect(throws: (any Error).self) { try await statement.value }
            await probe.value
        }
    }
}
