import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

struct GroupCommitTests {
    private func scene(_ change: (inout SQLiteStoreConfiguration) -> Void) throws -> (SQLiteFixture, StoreScene) {
        var configuration = SQLiteFixture.configuration
        change(&configuration)
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        return (fixture, StoreScene(fixture, clock: clock))
    }

    @Test func `requests during a slow commit share the next one`() async throws {
        let (fixture, scene) = try scene { _ in }
        try await fixture.together {
            for number in 1...2000 as ClosedRange<UInt64> {
                let envelope = Envelope(scene.notification(number, to: StoreScene.slot(number)))
                scene.store.put(envelope, reason: .power, tag: nil)
            }
        }
        await scene.witness.wait { $0.stored.count == 2000 }
        #expect(fixture.sqlite.statistics.commits <= 10)
        #expect(fixture.sqlite.statistics.largestCommit <= fixture.configuration.changesPerCommit)
        await fixture.close()
    }

    @Test func `ten thousand registrations at once take few commits`() async throws {
        let (fixture, scene) = try scene { _ in }
        let (began, beganContinuation) = AsyncStream.makeStream(of: Void.self)
        let gate = Gate()
        async let busy: Void = fixture.sqlite.change { _, _ in
            beganContinuation.yield()
            gate.wait()
        }
        for await _ in began { break }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in 1...10_000 as ClosedRange<UInt64> {
                group.addTask { _ = try await scene.store.register(StoreScene.slot(device), at: scene.now) }
            }
            while fixture.sqlite.pendingWrites <= 10_000 { await Task.yield() }
            gate.open()
            try await group.waitForAll()
        }
        try await busy
        #expect(fixture.sqlite.statistics.changes == 10_001)
        #expect(fixture.sqlite.statistics.commits < 400)
        await fixture.close()
    }

    @Test func `a commit has at most its limit of changes`() async throws {
        let (fixture, scene) = try scene { configuration in
            configuration.changesPerCommit = 7
            configuration.eventsPerCommit = 9
        }
        for number in 1...100 as ClosedRange<UInt64> {
            scene.store.put(
                Envelope(scene.notification(number, to: StoreScene.slot(number % 3))),
                reason: .power,
                tag: nil
            )
            scene.store.record([
                JournalEvent(.received, scene.notification(number, to: StoreScene.slot(1)), at: scene.now)
            ])
        }
        await scene.witness.wait { $0.stored.count == 100 }
        #expect(fixture.sqlite.statistics.largestCommit <= 7)
        #expect(try await scene.store.lines(matching: .app(AppNumber(1)), limit: 1000).count == 297)
        await fixture.close()
    }

    @Test func `events without a waiting caller are written soon`() async throws {
        let (fixture, scene) = try scene { $0.journalDelay = .milliseconds(1) }
        scene.store.record([JournalEvent(.received, scene.notification(1, to: StoreScene.slot(1)), at: scene.now)])
        while fixture.sqlite.statistics.commits == 0 { await Task.yield() }
        await fixture.close()
    }

    @Test func `the log is checkpointed in slices while it grows, and starts over`() async throws {
        let (fixture, scene) = try scene { configuration in
            configuration.checkpointPages = 50
            configuration.logPageLimit = 200
        }
        for number in 1...20_000 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 20_000 }
        #expect(fixture.sqlite.statistics.checkpoints > 5)
        let size = try #require(try fixture.folder.size(of: "store.sqlite-wal"))
        #expect(size < 2000 * 4096)
        await fixture.close()
    }

    @Test func `a long read does not stop commits, and the log starts over after it`()
        async throws
    {
        let (fixture, scene) = try scene { configuration in
            configuration.checkpointPages = 10
            configuration.logPageLimit = 20
            configuration.readerTimeout = .milliseconds(1)
        }
        let (began, beganContinuation) = AsyncStream.makeStream(of: Void.self)
        let gate = Gate()
        async let reading: Int? = fixture.sqlite.readers.read { database in
            let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM segment")
            beganContinuation.yield()
            gate.wait()
            return count
        }
        for await _ in began { break }
        for number in 1...3000 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 3000 }
        gate.open()
        #expect(try await reading == 0)
        for number in 1...3000 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 6000 }
        #expect(try await scene.waiting(StoreScene.slot(3000)) == [3000])
        await fixture.close()
    }
}
