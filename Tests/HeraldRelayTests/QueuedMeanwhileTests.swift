import HeraldModel
import Testing

@testable import HeraldRelay

/// Rows that another program queues again while a command of the relay finds them final.
@Suite(.timeLimit(.minutes(10))) struct QueuedMeanwhileTests {
    /// Makes a failed row, and runs a command while a transaction that queues it again is open.
    private func expectUntouched(_ command: @escaping @Sendable (RelayStore) async throws -> Int) async throws {
        let address = try PostgresServer.shared.database()
        let store = try RelayStore.patient(.postgresql(address))
        try await store.prepare()
        let id = try await store.queue()
        _ = try await store.finish(try #require(try await store.claim().first), .final(.failed, reason: "Because"))
        let (program, watcher) = (try PostgresConnection(address), try PostgresConnection(address))
        try program.command("BEGIN")
        try program.command("UPDATE push_queue SET status = 'queued', attempts = 7")
        let changed = Task { try await command(store) }
        let waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while try watcher.runOnce(waits, []).rows.isEmpty {
            try await Task.sleep(for: .milliseconds(20))  // pace: between looks at the waiting sessions
        }
        try program.command("COMMIT")
        #expect(try await changed.value == 0)
        #expect(try await store.column("attempts", of: id).int == 7)
        await store.close()
    }

    @Test func `a row that is queued meanwhile is not purged`() async throws {
        try await expectUntouched { try await $0.purge(RowSelection(), isDryRun: false).count }
    }

    @Test func `a row that is queued meanwhile is not queued anew`() async throws {
        try await expectUntouched { try await $0.retry(RowSelection(statuses: [.failed])) }
    }
}
