import HeraldModel
import Testing

@testable import HeraldRelay

/// PostgreSQL roles that do not own the queue.
@Suite struct PostgresRolesTests {
    /// Does something with a queue of `herald`, and with the same queue as another role.
    private func with(
        _ role: String,
        _ grants: String...,
        body: (_ owner: RelayStore, _ other: RelayStore) async throws -> Void
    ) async throws {
        let address = try PostgresServer.shared.database()
        let owner = try RelayStore.patient(.postgresql(address))
        let other = try RelayStore.patient(.postgresql(address.replacing("//herald@", with: "//\(role)@")))
        func close() async {
            await owner.close()
            await other.close()
        }
        do {
            try await owner.prepare()
            for sql in ["CREATE ROLE \(role) LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"] + grants {
                try await owner.run(sql)
            }
            try await body(owner, other)
        } catch {
            await close()
            throw error
        }
        await close()
    }

    @Test func `a relay that does not own the queue starts without the trigger`() async throws {
        let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO relay_role"
        try await with("relay_role", grant) { owner, relay in
            #expect(try await relay.prepare() == [])
            try await owner.run("DROP TRIGGER push_queue_resend ON push_queue")
            let warning = try #require(try await relay.prepare().first)
            #expect(warning.hasPrefix("the queue lacks push_queue_resend: ") && warning.contains("herald relay schema"))
            let id = try await relay.queue()
            let row = try #require(try await relay.claim().first)
            #expect(try await relay.finish(row, .final(.sent, reason: nil)) == [FinishedRow(row: id, status: .sent)])

            // The relay cannot do without a table.
            try await owner.run("DROP TABLE push_breakers")
            let error = try await #require(throws: RelayStoreError.self) { try await relay.prepare() }
            #expect(error.code == .unusable)
            #expect(error.message.hasPrefix("the queue lacks push_breakers, push_queue_resend, and "))
            #expect(error.message.contains("permission denied") && error.message.contains("`herald relay schema`"))
            try await owner.prepare()
            try await owner.run(grant)
            #expect(try await relay.prepare() == [])
        }
    }
}
