import Foundation
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

/// The store after a killed process or a power cut.
struct PowerLossTests {
    /// A run of puts, replacements and removals, cut at several moments.
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

        /// Puts into several slots without waiting for each.
        func load(from first: UInt64, count: UInt64, slots: UInt64 = 23) {
            for number in first..<first + count {
                let slot = StoreScene.slot(number % slots)
                scene.store.put(Envelope(scene.notification(number, to: slot)), reason: .deviceOffline, tag: nil)
            }
        }

        /// The newest reported notification of each slot.
        var acknowledged: [Slot: UInt64] {
            var newest: [Slot: UInt64] = [:]
            for put in scene.witness.heard.stored {
                newest[put.envelope.notification.slot] = put.envelope.notification.id.low
            }
            return newest
        }

        /// The number of acknowledged notifications that the next start does not find.
        ///
        /// A slot must have the last acknowledged one, or a later one.
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
    func `no acknowledged notification is lost, whichever unsynced writes are`(loss: FaultyDisk.Loss) async throws {
        let run = try await Run()
        for round in 0..<12 as Range<UInt64> {
            run.load(from: 100 + round * 200, count: 200)
            let target = Int(round) * 200 + 60
            await run.scene.witness.wait { $0.stored.count >= target }
            // The acknowledgements are read before the cut, so all of them must be there.
            let acknowledged = run.acknowledged
            let left = try run.fixture.disk.cut(losing: loss)
            #expect(try await run.lost(acknowledged, in: left) == 0)
        }
        await run.fixture.close()
    }

    @Test(arguments: [FaultyDisk.Loss.nothing, .everything, .some(seed: 1), .some(seed: 2), .some(seed: 3)])
    func `nothing is lost during compaction`(loss: FaultyDisk.Loss) async throws {
        let run = try await Run()
        for round in 1...3 as ClosedRange<UInt64> {
            try await run.fixture.together { run.load(from: round * 1008, count: 24, slots: 24) }
            let index = run.fixture.sqlite.index
            let last = try #require(index.entry(StoreScene.slot(23))?.position)
            for step in 0..<22 as Range<UInt64> {
                await run.scene.put(round * 1008 + 100 + step, to: StoreScene.slot(step))
                guard step % 4 == 3 else { continue }
                let acknowledged = run.acknowledged
                let left = try run.fixture.disk.cut(losing: loss)
                #expect(try await run.lost(acknowledged, in: left) == 0)
            }
            #expect(index.entry(StoreScene.slot(23))?.position != last)
        }
        await run.fixture.close()
    }

    @Test func `on a disk that lies about syncs, notifications are lost, which the test detects`() async throws {
        let run = try await Run(liesAboutSyncs: true)
        run.load(from: 100, count: 500)
        await run.scene.witness.wait { $0.stored.count >= 500 }
        let acknowledged = run.acknowledged
        let left = try run.fixture.disk.cut(losing: .everything)
        #expect(try await run.lost(acknowledged, in: left) > 0)
        await run.fixture.close()
    }

    @Test func `removed and replaced notifications do not come back after a kill`() async throws {
        let run = try await Run()
        let scene = run.scene
        for number in 1...5 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        let newer = try #require(await scene.put(6, to: StoreScene.slot(5)))
        scene.store.remove(StoreScene.slot(5), sequence: newer.sequence, event: nil)
        // Reading the journal commits pending requests.
        _ = try await scene.lines(1)
        let left = try run.fixture.disk.cut(losing: .everything)
        let store = try SQLiteFixture.open(left)
        let found = try await store.waiting(in: (1...5).map { StoreScene.slot($0) })
        #expect(found.map(\.notification.id.low) == [1, 2, 3, 4])
        await store.close()
        await run.fixture.close()
    }

    @Test func `sequences are not reused after a kill, even if all rows are deleted`() async throws {
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
        store.put(Envelope(scene.notification(9, to: StoreScene.slot(9))), reason: .power, tag: nil)
        let heard = await witness.wait { !$0.stored.isEmpty }
        #expect(try #require(heard.stored.first).sequence > put.sequence)
        await store.close()
        await run.fixture.close()
    }

    @Test func `a confirmed registration survives a power cut`() async throws {
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

    @Test func `a small store is checked completely after an unclean stop, and not after a clean one`() async throws {
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
