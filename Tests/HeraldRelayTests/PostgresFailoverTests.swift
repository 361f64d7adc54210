import HeraldModel
import Testing

@testable import HeraldRelay

/// Connections that the relay gives up, to connect to where the address leads now.
@Suite(.timeLimit(.minutes(10))) struct PostgresFailoverTests {
    private let database: PostgresDatabase

    init() throws {
        database = PostgresDatabase(address: try PostgresServer.shared.database(), limits: .patient)
    }

    /// The server's process for the connection.
    private func session() async throws -> Int64 {
        try await database.read { try #require(try $0.run("SELECT pg_backend_pid()").rows.first?[0].int) }
    }

    @Test func `an error of the server ends the connection if another one may do better`() async throws {
        let ending = [
            "08000", "08006", "08P01", "25006", "25P02", "25P03", "25P04", "57P01", "57P02", "57P03", "57P05", "26000",
            "34000",
            "0A000", "XX000", "XX001",
        ]
        let staying = ["40001", "40P01", "53100", "55P03", "57014", "58030", "23505", "42501", "42P01", "P0001"]
        for state in ending + staying {
            let before = try await session()
            let error = await #expect(throws: RelayStoreError.self) {
                try await database.write { session in
                    _ = try session.runOnce("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '\(state)'; END $$", [])
                }
            }
            #expect(error?.endsConnection == ending.contains(state) && error?.message.contains("(\(state))") == true)
            #expect((try await session() != before) == ending.contains(state), "\(state)")
        }
        await database.close()
    }

    @Test func `a connection that was closed while it was idle is replaced without an error`() async throws {
        let other = try PostgresConnection(try PostgresServer.shared.database())
        for _ in 0..<3 {
            let before = try await session()
            _ = try other.runOnce("SELECT pg_terminate_backend(\(before), 60000)", [])
            #expect(try await session() != before)
        }
        await database.close()
    }

    @Test func `a server that became read-only is left`() async throws {
        try await database.write { _ = try $0.runOnce("CREATE TABLE t (n int)", []) }
        let before = try await session()
        let error = await #expect(throws: RelayStoreError.self) {
            try await database.write { session in
                _ = try session.runOnce("SET TRANSACTION READ ONLY", [])
                _ = try session.run("INSERT INTO t VALUES (1)")
            }
        }
        #expect(error?.code == .unavailable && error?.message.contains("read-only") == true)
        try await database.write { _ = try $0.run("INSERT INTO t VALUES (1)") }
        #expect(try await session() != before)
        await database.close()
    }

    @Test func `a server that says that it became read-only is left at the next transaction`() async throws {
        let before = try await session()
        try await database.write { _ = try $0.runOnce("SET default_transaction_read_only = on", []) }
        #expect(try await session() != before)
        await database.close()
    }

    @Test func `the listener follows the other connection`() async throws {
        var changes = database.changes { _ in Issue.record("does not listen") }.makeAsyncIterator()
        await changes.next()
        // Without a row: it listens, or has connected anew. Once at most it begins to listen without a loss.
        for _ in 1...2 {
            _ = try? await database.read {
                _ = try $0.runOnce("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P01'; END $$", [])
            }
            await changes.next()
        }
        await database.close()
    }

    @Test func `a transaction that the server rolled back is not taken for committed`() async throws {
        let error = await #expect(throws: RelayStoreError.self) {
            try await database.write { session in
                _ = try? session.runOnce("SELECT 1 / 0", [])
            }
        }
        #expect(error?.message == "PostgreSQL: the transaction was rolled back" && error?.code == .unavailable)
        await database.close()
    }

    @Test func `a row of another statement is an error, and ends the connection`() async throws {
        let before = try await session()
        let error = await #expect(throws: RelayStoreError.self) {
            try await database.read { _ = try $0.run("SELECT 1").rows.first?[3] }
        }
        #expect(error?.message == "the database answered another statement: a row with 1 columns has no column 3")
        #expect(try await session() != before)
        let row = SQLRow(values: [.int(1), .null, .int(3)])
        for column in [-1, 3, .max] { #expect(throws: RelayStoreError.self) { try row[column] } }
        #expect(try row.last(2, from: 1) == [.null, .int(3)])
        for count in [0, 1, 3] { #expect(throws: RelayStoreError.self) { try row.last(count, from: 1) } }
        await database.close()
    }

    @Test func `a queue behind a pooler is looked at, and that is told once`() async throws {
        let address = PostgresServer.pooled(try PostgresServer.shared.database())
        let (reasons, reason) = AsyncStream.makeStream(of: String.self)
        let pooled = PostgresDatabase(address: address, limits: .patient)
        var changes = pooled.changes { reason.yield($0) }.makeAsyncIterator()
        for _ in 0..<3 { await changes.next() }
        reason.finish()
        var told: [String] = []
        for await text in reasons { told.append(text) }
        #expect(told == ["the connection leads to a pooler, which does not pass on notifications"])
        await pooled.close()
    }
}
