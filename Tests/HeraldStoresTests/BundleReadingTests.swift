import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

/// Reading while bundles are written again elsewhere: nothing that waits is missed, and nothing that was taken away or
/// replaced before comes.
struct BundleReadingTests {
    /// What readers must find.
    private final class Ledger: Sendable {
        private let numbers = Mutex<[UInt64: UInt64]>([:])
        private let over = Mutex(false)

        /// Of each slot the number of what was reported last, or one past that of what was taken out last.
        var newest: [UInt64: UInt64] { numbers.withLock { $0 } }
        var isOver: Bool { over.withLock { $0 } }

        func note(_ new: [UInt64: UInt64]) {
            numbers.withLock { $0.merge(new) { max($0, $1) } }
        }

        func end() { over.withLock { $0 = true } }
    }

    /// A store with one thread that reads, and a bundle of so many notifications, one for each slot from 1 on.
    private static func bundle(of count: UInt64) async throws -> (SQLiteFixture, StoreScene) {
        var configuration = SQLiteFixture.configuration
        configuration.readerCount = 1
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        let scene = StoreScene(fixture, clock: clock)
        try await fixture.together {
            for number in 1...count {
                let letter = Letter(scene.notification(number, to: StoreScene.slot(number)))
                scene.store.put(letter, reason: .power, tag: nil)
            }
        }
        return (fixture, scene)
    }

    @Test func `a read whose transaction is older than a move finds what was moved`() async throws {
        let (fixture, _) = try await BundleReadingTests.bundle(of: 9)
        let store = fixture.sqlite
        let place = try #require(store.index.entry(StoreScene.slot(9))?.place)
        #expect(place.count == 9)
        // The one thread is busy, so that two short reads gather and share a transaction.
        let (busy, first) = (Gate(), Gate())
        let (hasBegun, began) = AsyncStream.makeStream(of: Void.self)
        store.readers.submit(
            isQuick: false,
            { _ in
                began.yield()
                busy.wait()
            },
            { (_: Result<Void, any Error>) in }
        )
        for await _ in hasBegun { break }
        let (hasRead, read) = AsyncStream.makeStream(of: Void.self)
        store.readers.submit(
            isQuick: true,
            { database in
                _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM bundle")
                read.yield()
                first.wait()
            },
            { (_: Result<Void, any Error>) in }
        )
        let (answers, answer) = AsyncStream.makeStream(of: [UInt64].self)
        store.read([StoreScene.slot(9)]) { answer.yield((try? $0.get().map(\.notification.id.low)) ?? []) }
        busy.open()
        for await _ in hasRead { break }
        for number in 1...8 as ClosedRange<UInt64> {
            let held = try #require(store.index.entry(StoreScene.slot(number)))
            store.remove(held.slot, sequence: held.sequence, event: nil)
        }
        try await store.change { _, _ in }
        #expect(store.index.entry(StoreScene.slot(9))?.place != place)
        first.open()
        for await found in answers {
            #expect(found == [9])
            break
        }
        await fixture.close()
    }

    /// Keeps a thread of the readers busy, until the gate is opened; quick ones have begun their transaction by then.
    private func occupy(_ store: SQLiteStore, isQuick: Bool) -> (gate: Gate, hasBegun: AsyncStream<Void>) {
        let gate = Gate()
        let (hasBegun, began) = AsyncStream.makeStream(of: Void.self)
        store.readers.submit(isQuick: isQuick) { database in
            if isQuick { _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM bundle") }
            began.yield()
            gate.wait()
        } _: { (_: Result<Void, any Error>) in
        }
        return (gate, hasBegun)
    }

    private func remove(_ numbers: ClosedRange<UInt64>, _ store: SQLiteStore) async throws {
        for number in numbers {
            let held = try #require(store.index.entry(StoreScene.slot(number)))
            store.remove(held.slot, sequence: held.sequence, event: nil)
        }
        try await store.change { _, _ in }
    }

    /// While it reads, the bundle moves; while it would read once more in a transaction that others share, it moves again.
    @Test(arguments: [true, false])
    func `a read that is overtaken twice finds what was moved twice`(canWrite: Bool) async throws {
        let (fixture, scene) = try await BundleReadingTests.bundle(of: 33)
        let store = fixture.sqlite
        let place = try #require(store.index.entry(StoreScene.slot(33))?.place)
        #expect(place.count == 33)
        // The one thread is busy, so that two short reads gather and share a transaction; then again.
        let busy = occupy(store, isQuick: false)
        for await _ in busy.hasBegun { break }
        let first = occupy(store, isQuick: true)
        let (answers, answer) = AsyncStream.makeStream(of: [UInt64].self)
        store.read([StoreScene.slot(33)]) { answer.yield((try? $0.get().map(\.notification.id.low)) ?? []) }
        busy.gate.open()
        for await _ in first.hasBegun { break }
        let busyAgain = occupy(store, isQuick: false)
        let second = occupy(store, isQuick: true)
        try await remove(1...25, store)
        let next = try #require(store.index.entry(StoreScene.slot(33))?.place)
        #expect(next != place && next.count == 8)
        if !canWrite {
            fixture.setFailsWrites(true)
            #expect(await scene.put(34, to: StoreScene.slot(34)) == nil)
        }
        first.gate.open()
        for await _ in busyAgain.hasBegun { break }
        // Behind what the first look has left for the writer, if anything.
        if canWrite { try await store.change { _, _ in } } else { try? await store.change { _, _ in } }
        busyAgain.gate.open()
        for await _ in second.hasBegun { break }
        if canWrite {
            try await remove(26...31, store)
            #expect(store.index.entry(StoreScene.slot(33))?.place.count == 2)
        }
        second.gate.open()
        for await found in answers {
            #expect(found == [33])
            break
        }
        fixture.setFailsWrites(false)
        await fixture.close()
    }

    @Test(arguments: [true, false])
    func `what is missing is left out, and the others come`(canWrite: Bool) async throws {
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock)
        let scene = StoreScene(fixture, clock: clock)
        for number in 1...3 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        let place = try #require(fixture.sqlite.index.entry(StoreScene.slot(2))?.place)
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "DELETE FROM bundle WHERE number = ?", arguments: [place.bundle])
        }
        if !canWrite {
            fixture.setFailsWrites(true)
            #expect(await scene.put(4, to: StoreScene.slot(4)) == nil)
        }
        #expect(try await scene.waiting(StoreScene.slot(1), StoreScene.slot(2), StoreScene.slot(3)) == [1, 3])
        fixture.setFailsWrites(false)
        await fixture.close()
    }

    @Test func `while bundles come and go, readers find what waits, and never what was removed or replaced before`()
        async throws
    {
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock)
        let scene = StoreScene(fixture, clock: clock)
        let store = fixture.sqlite
        let steady = stride(from: 0, to: 400, by: 10).map { UInt64($0) }
        let ledger = Ledger()
        for number in 0..<400 as Range<UInt64> {
            store.put(Letter(scene.notification(number + 1, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 400 }
        let first = Set(steady.compactMap { store.index.entry(StoreScene.slot($0))?.place })
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var reads = 0
                    while !ledger.isOver {
                        let slots = (0..<400 as Range<UInt64>).shuffled().prefix(40)
                        let known = ledger.newest
                        let found = try await store.waiting(in: (steady + slots).map { StoreScene.slot($0) })
                        let bySlot = Dictionary(
                            found.map { ($0.notification.slot.device.value, $0.notification.id.low) },
                            uniquingKeysWith: { max($0, $1) }
                        )
                        for slot in steady { #expect(bySlot[slot] == slot + 1) }
                        for slot in slots where !steady.contains(slot) {
                            #expect(bySlot[slot] ?? .max >= known[slot] ?? 0)
                        }
                        reads += 1
                    }
                    return reads
                }
            }
            var number: UInt64 = 1000
            for round in 0..<300 {
                let count = scene.witness.heard.stored.count
                var put: [UInt64: UInt64] = [:]
                for slot in (0..<400 as Range<UInt64>).shuffled().prefix(60) where slot % 10 != 0 {
                    number += 1
                    if round % 3 == 0, let held = store.index.entry(StoreScene.slot(slot)) {
                        store.remove(held.slot, sequence: held.sequence, event: nil)
                        ledger.note([slot: number])
                    } else {
                        let letter = Letter(scene.notification(number, to: StoreScene.slot(slot)))
                        store.put(letter, reason: .power, tag: nil)
                        put[slot] = number
                    }
                }
                let target = count + put.count
                await scene.witness.wait { $0.stored.count >= target }
                ledger.note(put)
            }
            ledger.end()
            for try await reads in group { #expect(reads > 0) }
        }
        // They were all written again, and more than once.
        let last = Set(steady.compactMap { store.index.entry(StoreScene.slot($0))?.place })
        #expect(first.isDisjoint(with: last))
        try await scene.restart()
        let found = try await scene.store.waiting(in: steady.map { StoreScene.slot($0) })
        #expect(Set(found.map(\.notification.id.low)) == Set(steady.map { $0 + 1 }))
        await fixture.close()
    }
}
