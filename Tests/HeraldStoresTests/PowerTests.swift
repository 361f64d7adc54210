import Foundation
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

/// What is left when the process or the power goes in the middle of work.
struct PowerTests {
    /// A run of puts, replacements and removals, cut at some moments.
    private struct Run {
        let fixture: SQLiteFixture
        let scene: StoreScene

        init(liesAboutSyncs: Bool = false) async throws {
            var configuration = SQLiteFixture.configuration
            configuration.checkpointPages = 8
            configuration.journalDelay = .milliseconds(1)
            let clock = ManualClock()
            fixture = try SQLiteFixture(clock: clock, configuration: configuration)
            scene = StoreScene(fixture, clock: clock)
            await scene.put(1, to: StoreScene.slot(0))
            try fixture.disk.beginRecording(liesAboutSyncs: liesAboutSyncs)
        }

        /// Puts without waiting for each, from a few threads' worth of slots.
        func load(from first: UInt64, count: UInt64, slots: UInt64 = 23) {
            for number in first..<first + count {
                let slot = StoreScene.slot(number % slots)
                scene.store.put(Letter(scene.notification(number, to: slot)), reason: .deviceOffline, tag: nil)
            }
        }

        /// What was reported up to now, the newest number for each slot.
        var acknowledged: [Slot: UInt64] {
            var newest: [Slot: UInt64] = [:]
            for put in scene.witness.heard.stored {
                newest[put.letter.notification.slot] = put.letter.notification.id.low
            }
            return newest
        }

        /// How many acknowledged notifications a start on what is left does not find: what a slot holds then must be
        /// what was acknowledged last, or something put later.
        func lost(_ acknowledged: [Slot: UInt64], in folder: TemporaryFolder) async throws -> Int {
            let store = try SQLiteFixture.open(folder)
            var lost = 0
            for (slot, number) in acknowledged {
                let found = try await store.waiting(in: [slot]).first?.notification.id.low ?? 0
                if found < number { lost += 1 }
            }
            await store.close()
            return lost
        }
    }

    @Test(arguments: [FaultyDisk.Loss.nothing, .everything, .some(seed: 1), .some(seed: 2), .some(seed: 3)])
    func `no acknowledged notification is lost, whatever of the unsynced writes is`(loss: FaultyDisk.Loss) async throws
    {
        let run = try await Run()
        for round in 0..<12 as Range<UInt64> {
            run.load(from: 100 + round * 200, count: 200)
            let target = Int(round) * 200 + 60
            await run.scene.witness.wait { $0.stored.count >= target }
            // First what was acknowledged, then the cut: so all of it must be there.
            let acknowledged = run.acknowledged
            let left = try run.fixture.disk.cut(losing: loss)
            #expect(try await run.lost(acknowledged, in: left) == 0)
        }
        await run.fixture.close()
    }

    @Test(arguments: [FaultyDisk.Loss.nothing, .everything, .some(seed: 1), .some(seed: 2), .some(seed: 3)])
    func `nothing is lost where most of a bundle died and the rest is written again`(loss: FaultyDisk.Loss) async throws
    {
        let run = try await Run()
        for round in 1...3 as ClosedRange<UInt64> {
            try await run.fixture.together { run.load(from: round * 1008, count: 24, slots: 24) }
            let index = run.fixture.sqlite.index
            let last = try #require(index.entry(StoreScene.slot(23))?.place)
            for step in 0..<22 as Range<UInt64> {
                await run.scene.put(round * 1008 + 100 + step, to: StoreScene.slot(step))
                guard step % 4 == 3 else { continue }
                let acknowledged = run.acknowledged
                let left = try run.fixture.disk.cut(losing: loss)
                #expect(try await run.lost(acknowledged, in: left) == 0)
            }
            #expect(index.entry(StoreScene.slot(23))?.place != last)
        }
        await run.fixture.close()
    }

    @Test func `on a disk that lies about syncs notifications are lost: the test would notice`() async throws {
        let run = try await Run(liesAboutSyncs: true)
        run.load(from: 100, count: 500)
        await run.scene.witness.wait { $0.stored.count >= 500 }
        let acknowledged = run.acknowledged
        let left = try run.fixture.disk.cut(losing: .everything)
        #expect(try await run.lost(acknowledged, in: left) > 0)
        await run.fixture.close()
    }

    @Test func `what was removed or replaced does not come back after the process was killed`() async throws {
        let run = try await Run()
        let scene = run.scene
        for number in 1...5 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        let newer = try #require(await scene.put(6, to: StoreScene.slot(5)))
        scene.store.remove(StoreScene.slot(5), sequence: newer.sequence, event: nil)
        // Reading the journal commits all that was ordered before.
        _ = try await scene.lines(1)
        let left = try run.fixture.disk.cut(losing: .everything)
        let store = try SQLiteFixture.open(left)
        let found = try await store.waiting(in: (1...5).map { StoreScene.slot($0) })
        #expect(found.map(\.notification.id.low) == [1, 2, 3, 4])
        await store.close()
        await run.fixture.close()
    }

    @Test func `sequences go on after the process was killed, even where all rows are gone`() async throws {
        let run = try await Run()
        let scene = run.scene
        let put = try #require(await scene.put(5, to: StoreScene.slot(5)))
        scene.store.remove(StoreScene.slot(5), sequence: put.sequence, event: nil)
        scene.store.remove(StoreScene.slot(0), sequence: 1, event: nil)
        _ = try await scene.lines(1)
        let left = try run.fixture.disk.cut(losing: .everything)
        let store = try SQLiteFixture.open(left)
        let witness = StoreWitness()
        store.report(to: witness)
        store.put(Letter(scene.notification(9, to: StoreScene.slot(9))), reason: .power, tag: nil)
        let heard = await witness.wait { !$0.stored.isEmpty }
        #expect(try #require(heard.stored.first).sequence > put.sequence)
        await store.close()
        await run.fixture.close()
    }

    @Test func `a registration that was confirmed is there after a power cut`() async throws {
        let run = try await Run()
        let scene = run.scene
        let device = try #require(DeviceID("phone"))
        let number = try await scene.store.number(of: device)
        let slot = Slot(device: number, app: AppNumber(1))
        let registration = try await scene.store.register(slot, at: scene.now)
        let left = try run.fixture.disk.cut(losing: .everything)
        let store = try SQLiteFixture.open(left)
        #expect(try await store.loadRegistry().registrations == [registration])
        #expect(try await store.number(of: device) == number)
        await store.close()
        await run.fixture.close()
    }

    @Test func `a small store is checked from end to end after an unclean stop, and a closed one is not`() async throws
    {
        let run = try await Run()
        _ = try await run.scene.lines(1)
        let left = try run.fixture.disk.cut(losing: .nothing)
        let isClean = try await run.fixture.sqlite.readers.read { try StoreSettings.isClean($0) }
        #expect(!isClean)
        var configuration = SQLiteFixture.configuration
        configuration.fullCheckPages = 1
        for limit in [25_000, 1] {
            configuration.fullCheckPages = limit
            let copy = try left.copy()
            await (try SQLiteFixture.open(copy, configuration)).close()
        }
        await run.fixture.close()
    }
}
