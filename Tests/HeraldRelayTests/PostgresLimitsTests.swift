import HeraldModel
import Testing

@testable import HeraldRelay

@Suite struct PostgresLimitsTests {
    private let address: String

    init() throws {
        address = try PostgresServer.shared.database()
    }

    private func database(_ change: (inout PostgresLimits) -> Void) -> PostgresDatabase {
        var limits = PostgresLimits.patient
        change(&limits)
        return PostgresDatabase(address: address, limits: limits)
    }

    private func expectUnavailable(_ words: String, _ body: () async throws -> Void) async {
        let error = await #expect(throws: RelayStoreError.self) { try await body() }
        #expect(error?.code == .unavailable && error?.message.contains(words) == true)
    }

    @Test func `a lock of another session delays a statement for a limited time`() async throws {
        let database = database { $0.lock = .milliseconds(50) }
        try await database.write { _ = try $0.runOnce("CREATE TABLE t (n int)", []) }
        let other = try PostgresConnection(address)
        try other.command("BEGIN")
        try other.command("LOCK TABLE t")
        await expectUnavailable("lock timeout") {
            try await database.write { _ = try $0.run("INSERT INTO t VALUES (1)") }
        }
        await expectUnavailable("lock timeout") { try await database.read { _ = try $0.run("SELECT n FROM t") } }
        try other.command("COMMIT")
        try await database.write { _ = try $0.run("INSERT INTO t VALUES (1)") }
        await database.close()
    }

    @Test func `a server that does not answer is given up, and asked again on a new connection`() async throws {
        // The server's own limit does not help a client of a frozen server.
        let database = database { $0.answer = .milliseconds(200) }
        // On a busy machine, even a short answer may not come in time.
        func one() async throws -> Int64? {
            while true {
                do {
                    return try await database.read { try $0.run("SELECT 1").rows.first?[0].int }
                } catch let error as RelayStoreError where error.message.contains("no answer in time") {}
            }
        }
        _ = try await one()
        await expectUnavailable("no answer in time") {
            try await database.read { _ = try $0.run("SELECT pg_sleep(240)") }
        }
        #expect(try await one() == 1)
        await database.close()
    }

    @Test func `transactions do not wait for one after another without end`() async throws {
        // On a busy machine, even the first transaction may not begin in time.
        let database = database { $0.begin = .milliseconds(100) }
        let holder = Task {
            while !Task.isCancelled {
                do {
                    try await database.read { _ = try $0.run("SELECT pg_sleep(0.3)") }
                } catch let error as RelayStoreError where error.message.contains("take too long") {}
            }
        }
        var isRefused = false
        while !isRefused {
            do {
                _ = try await database.read { try $0.run("SELECT 1").rows }
            } catch let error as RelayStoreError {
                #expect(error.code == .unavailable && error.message.contains("take too long"))
                isRefused = true
            }
        }
        holder.cancel()
        try await holder.value
        while isRefused {
            do {
                _ = try await database.read { try $0.run("SELECT 1").rows }
                isRefused = false
            } catch let error as RelayStoreError where error.message.contains("take too long") {}
        }
        await database.close()
    }

    @Test func `a long text is sent and read whole`() async throws {
        let database = database { _ in }
        let text = String(repeating: "x", count: 3 << 20)
        let rows = try await database.read { try $0.run("SELECT ?1 || 'y'", [.text(text)]).rows }
        #expect(rows.first?.values.first?.text == text + "y")
        await database.close()
    }
}
