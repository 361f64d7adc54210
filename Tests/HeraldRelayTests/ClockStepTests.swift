import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldRelay

/// A wall clock that is set back by an hour.
@Suite(.timeLimit(.minutes(10))) struct ClockStepTests {
    /// A database whose first write fails.
    private final class FailingDatabase: SQLDatabase {
        private let database: any SQLDatabase
        private let writes = Mutex(0)

        var dialect: SQLDialect { database.dialect }
        var tables: TableNames { database.tables }
        var works: Bool { writes.withLock { $0 > 1 } }

        init(_ database: any SQLDatabase) {
            self.database = database
        }

        func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
        {
            let count = writes.withLock { writes in
                writes += 1
                return writes
            }
            guard count == 1 else { return try await database.write(body) }
            throw RelayStoreError(.unavailable, "the connection is lost")
        }

        func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
            try await database.read(body)
        }

        func warnings() async throws -> [String] { try await database.warnings() }
        func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> { database.changes(note: note) }
        func close() async { await database.close() }
    }

    private struct Nobody: RelaySender {
        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {}
        func shutdown() async {}
    }

    @Test func `a failed database is used again after its pause`() async throws {
        try await Engine.all[0].with { store in
            let clock = ManualClock(Words.now)
            let database = FailingDatabase(store.database)
            let relay = Relay.one(RelayStore(database), clock: clock)
            var rounds = 0
            await QueuePump(relay.context, relay.rows).run {
                rounds += 1
                // The first write has failed.
                if rounds == 2 { clock.advance(by: .seconds(-3600)) }
                return database.works
            }
            #expect(database.works && relay.context.health.problems.isEmpty)
        }
    }

    @Test func `the pauses of a service, its credential and its journal are as long as before`() throws {
        let app = RelayApp.herald()
        let backOff = RetryBackOff(firstPause: .seconds(40))
        let route = Route(app, sender: Nobody(), journal: nil, backOff: backOff)
        let topic = try #require(Topic("com.example.chat"))
        route.note(.notSent(RowError(.unreachable)))
        _ = route.noteCredential(.credentialRefused(RowError(.badCredential)), topic, at: Words.now)
        let earlier = Words.now - .seconds(3600)
        let ends = [route.openUntil(at: earlier), route.waitForCredential(topic, at: earlier)?.until]
        for end in ends { #expect(try #require(end) > earlier && #require(end) <= earlier + .seconds(40)) }

        let now = ContinuousClock.now
        _ = route.noteJournal(.unavailable("no answer"), at: now)
        #expect(!route.needsJournalProbe(at: now + .seconds(29)) && route.needsJournalProbe(at: now + .seconds(30)))
    }
}
