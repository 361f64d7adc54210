import Foundation
import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// Closing the store while it is in use.
///
/// SQLite crashes if a closed connection is used, so these tests are most useful with the address sanitizer.
struct ClosingTests {
    /// The ways in which a store ends.
    enum End: CaseIterable {
        /// It is closed twice while in use.
        case closed
        /// The last reference is released.
        case dropped
        /// Readers are cancelled, then it is closed.
        case cancelled
    }

    @Test func `the certain time outlives the service`() async throws {
        let fixture = try SQLiteFixture()
        #expect(try await fixture.sqlite.clockRecord() == nil)
        let certain = ClockGuard.Reading(wall: WallTime(seconds: 1_800_000_000), uptime: .seconds(7), boot: 9)
        for record in [
            ClockGuard.Record(certain: certain),
            ClockGuard.Record(certain: certain, withheld: .seconds(60), deviation: .seconds(7200)),
        ] {
            try await fixture.sqlite.setClockRecord(record)
            try await fixture.restart()
            #expect(try await fixture.sqlite.clockRecord() == record)
        }
        await fixture.close()
    }

    /// The operations that run until the store ends.
    private static let users: [@Sendable (SQLiteStore, WallTime) async throws -> Void] = [
        { store, _ in _ = try await store.waiting(in: (0..<40).map { StoreScene.slot($0) }) },
        { store, _ in
            _ = try await store.lines(matching: .notification(NotificationID(high: 0xA, low: 7)), limit: 100)
        },
        { store, _ in _ = try await store.lines(matching: .app(AppNumber(1)), limit: 10) },
        { store, _ in _ = try await store.loadRegistry() },
        { store, now in _ = try await store.register(StoreScene.slot(3), at: now) },
        { store, now in _ = try await store.removeExpired(at: now + .seconds(7200), limit: 1000) },
        { store, now in try await store.trim(before: now, maximumBytes: 4096) },
    ]

    /// Uses the store until it is closed, or the task is cancelled.
    /// - Returns: The error, if something else ended it.
    private static func use(
        _ store: SQLiteStore,
        _ now: WallTime,
        rounds: Int,
        _ user: @Sendable (SQLiteStore, WallTime) async throws -> Void
    ) async -> (any Error)? {
        do {
            for _ in 0..<rounds { try await user(store, now) }
            return nil
        } catch let error {
            return error is CancellationError || error as? StoreError == .closed ? nil : error
        }
    }

    private static func envelope(_ number: UInt64, at now: WallTime) -> Envelope {
        Envelope(
            HeraldModel.Notification(
                id: NotificationID(high: 0xA, low: number),
                uniqueID: NotificationID(high: 0xB, low: number),
                slot: StoreScene.slot(number % 40),
                received: now,
                storedUntil: now + .seconds(number % 2 == 0 ? 3600 : 9000),
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: Array("{}".utf8)
            )
        )
    }

    @Test(arguments: End.allCases)
    func `a store that ends while in use ends cleanly, repeatedly`(end: End) async throws {
        let folder = try TemporaryFolder()
        var configuration = SQLiteFixture.configuration
        configuration.checkpointPages = 8
        configuration.journalDelay = .milliseconds(1)
        configuration.maintenanceSlice = 4
        let now = WallTime(seconds: 1_800_000_000)
        for round in 0..<30 {
            let witness = StoreWitness()
            var store: SQLiteStore? = try SQLiteFixture.open(folder, configuration)
            weak let queue = store?.queue
            store?.report(to: witness)
            let failures = await withTaskGroup(of: (any Error)?.self) { [opened = store] group in
                guard let opened else { return [any Error]() }
                for user in ClosingTests.users {
                    let rounds = end == .dropped ? round % 5 : .max
                    group.addTask { await ClosingTests.use(opened, now, rounds: rounds, user) }
                }
                for number in 0..<UInt64(50 + round * 20) {
                    opened.put(ClosingTests.envelope(number, at: now), reason: .power, tag: nil)
                }
                switch end {
                case .dropped:
                    break
                case .closed:
                    group.addTask {
                        await opened.close()
                        return nil
                    }
                    await opened.close()
                case .cancelled:
                    group.cancelAll()
                    await opened.close()
                }
                return await group.reduce(into: [any Error]()) { if let error = $1 { $0.append(error) } }
            }
            #expect(failures.isEmpty)
            store = nil
            while queue != nil { await Task.yield() }
            // The writer has ended, every caller has its answer, and only the file is left.
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["store.sqlite"])
            #expect(witness.heard.stored.count + witness.heard.failed.count == 50 + round * 20)
        }
    }

    @Test func `closing waits for a running read`() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteFixture.open(folder)
        let (began, beganContinuation) = AsyncStream.makeStream(of: Void.self)
        let gate = Gate()
        async let reading: Int? = store.readers.read { database in
            beganContinuation.yield()
            gate.wait()
            return try Int.fetchOne(database, sql: "SELECT count(*) FROM segment")
        }
        for await _ in began { break }
        async let closing: Void = store.close()
        // The pool refuses other reads before it waits for this one.
        while (try? await store.readers.read { _ in }) != nil { await Task.yield() }
        gate.open()
        #expect(try await reading == 0)
        await closing
    }

    @Test func `a store whose writer cannot start refuses every request, and reports a fatal error`() async throws {
        let fixture = try SQLiteFixture()
        let scene = StoreScene(fixture, clock: ManualClock())
        try await fixture.sqlite.change { database, _ in try database.execute(sql: "DROP TABLE journal") }
        await fixture.sqlite.close()
        let notes = SQLiteFixture.FatalNotes()
        let store = try SQLiteFixture.open(fixture.folder, notes: notes)
        store.report(to: scene.witness)
        store.put(ClosingTests.envelope(1, at: scene.now), reason: .power, tag: nil)
        await #expect(throws: StoreError.self) { try await store.register(StoreScene.slot(1), at: scene.now) }
        store.record(
            JournalEvent(.discardedDisabled, scene.notification(4, to: StoreScene.slot(1)), at: scene.now),
            settling: Completion(handler: scene.witness, number: 4)
        )
        let heard = await scene.witness.wait { !$0.failed.isEmpty && !$0.settled.isEmpty }
        #expect(heard.stored.isEmpty)
        #expect(notes.all.count == 1)
        #expect(!store.isAccepting)
        await store.close()
        await fixture.close()
    }
}
