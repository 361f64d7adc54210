import Foundation
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldRelay

/// The end of a relay, and the pauses of its checks.
@Suite(.timeLimit(.minutes(10))) struct RelayEndTests {
    /// A database whose writes meet the end of their task.
    private final class EndingDatabase: SQLDatabase {
        private let database: any SQLDatabase

        var dialect: SQLDialect { database.dialect }
        var tables: TableNames { database.tables }

        init(_ database: any SQLDatabase) {
            self.database = database
        }

        func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
        {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await database.write(body)
        }

        func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
            try await database.read(body)
        }

        func warnings() async throws -> [String] { try await database.warnings() }
        func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> { database.changes(note: note) }
        func close() async { await database.close() }
    }

    private func relay(_ store: RelayStore, _ notes: LogNotes) -> Relay {
        Relay.one(store, notes: notes)
    }

    @Test func `a shutdown is not told as a failure of the database`() async throws {
        try await Engine.all[0].with { store in
            let notes = LogNotes()
            let relay = relay(RelayStore(EndingDatabase(store.database)), notes)
            await Task { await QueuePump(relay.context, relay.rows).run { false } }.value
            #expect(notes.all.isEmpty && relay.context.health.problems.isEmpty)
        }
    }

    @Test func `a check that failed is repeated soon, and a long one later`() async throws {
        try await Engine.all[0].with { store in
            let monitor = relay(store, LogNotes()).monitor
            let shortest = RelayConfiguration().progressPause
            #expect(monitor.pause(after: .seconds(60), isFailed: true) == shortest)
            #expect(monitor.pause(after: .seconds(60), isFailed: false) == .seconds(540))
            #expect(monitor.pause(after: .zero, isFailed: false) == shortest)
        }
    }

    @Test func `the file of a lock is gone with it, and keeps a second relay away before`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("relay-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let address = DatabaseAddress.sqlite(path: folder.appendingPathComponent("app.db").path)
        func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
        for _ in 0..<2 {
            let lock = try QueueLock.take(address)
            #expect(try files() == ["app.db-relay"])
            #expect(throws: RelayStoreError.self) { try QueueLock.take(address) }
            #expect(try files() == ["app.db-relay"])
            withExtendedLifetime(lock) {}
        }
        #expect(try files().isEmpty)
    }
}
