import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

/// Reads during compaction: they find every stored notification, and none that was removed or replaced before.
struct SegmentReadingTests {
    /// The expected content of the slots.
    private final class Ledger: Sendable {
        private let numbers = Mutex<[UInt64: UInt64]>([:])
        private let readers = Mutex<Set<Int>>([])
        private let over = Mutex(false)

        /// For each slot, the number of the last reported notification, or one past that of the last removed one.
        var newest: [UInt64: UInt64] { numbers.withLock { $0 } }
        /// How many readers have read.
        var readerCount: Int { readers.withLock { $0.count } }
        var isOver: Bool { over.withLock { $0 } }

        func note(_ new: [UInt64: UInt64]) {
            numbers.withLock { $0.merge(new) { max($0, $1) } }
        }

        func noteRead(by reader: Int) { readers.withLock { _ = $0.insert(reader) } }

        func end() { over.withLock { $0 = true } }
    }

    /// A store with one reader thread, and a segment with one notification for each slot from 1 to `count`.
    private static func segment(of count: UInt64) async throws -> (SQLiteFixture, StoreScene) {
        var configuration = SQLiteFixture.configuration
        configuration.readerCount = 1
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        let scene = StoreScene(fixture, clock: clock)
        try await fixture.together {
            for number in 1...count {
                let envelope = Envelope(scene.notification(number, to: StoreScene.slot(number)))
                scene.store.put(envelope, reason: .power, tag: nil)
            }
        }
        return (fixture, scene)
    }

    @Test func `a read whose transaction is older than a compaction finds the moved notification`() async throws {
        let (fixture, _) = try await SegmentReadingTests.segment(of: 9)
        let store = fixture.sqlite
        let position = try #require(store.index.entry(StoreScene.slot(9))?.position)
        #expect(position.count == 9)
        // The thread is busy, so that two quick reads share a transaction.
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
                _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM segment")
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
        #expect(store.index.entry(StoreScene.slot(9))?.position != position)
        first.open()
        for await found in answers {
            #expect(found == [9])
            break
        }
        await fixture.close()
    }

    /// Keeps a reader thread busy until the gate opens.
    ///
    /// A quick read has begun its transaction by then.
    private func occupy(_ store: SQLiteStore, isQuick: Bool) -> (gate: Gate, hasBegun: AsyncStream<Void>) {
        let gate = Gate()
        let (hasBegun, began) = AsyncStream.makeStream(of: Void.self)
        store.readers.submit(isQuick: isQuick) { database in
            if isQuick { _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM segment") }
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

    /// The segment is compacted during the read, and again during its retry in a shared transaction.
    @Test(arguments: [true, false])
    func `a read finds a notification that is moved twice meanwhile`(canWrite: Bool) async throws {
        let (fixture, scene) = try await SegmentReadingTests.segment(of: 33)
        let store = fixture.sqlite
        let position = try #require(store.index.entry(StoreScene.slot(33))?.position)
        #expect(position.count == 33)
        // The thread is busy, so that two quick reads share a transaction; then again.
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
        let next = try #require(store.index.entry(StoreScene.slot(33))?.position)
        #expect(next != position && next.count == 8)
        if !canWrite {
            fixture.setFailsWrites(true)
            #expect(await scene.put(34, to: StoreScene.slot(34)) == nil)
        }
        first.gate.open()
        for await _ in busyAgain.hasBegun { break }
        // Behind the request that the first attempt left for the writer, if any.
        if canWrite { try await store.change { _, _ in } } else { try? await store.change { _, _ in } }
        busyAgain.gate.open()
        for await _ in second.hasBegun { break }
        if canWrite {
            try await remove(26...31, store)
            #expect(store.index.entry(StoreScene.slot(33))?.position.count == 2)
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
    func `a read returns the other notifications if a segment is missing`(canWrite: Bool) async throws {
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock)
        let scene = StoreScene(fixture, clock: clock)
        for number in 1...3 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        let position = try #require(fixture.sqlite.index.entry(StoreScene.slot(2))?.position)
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "DELETE FROM segment WHERE number = ?", arguments: [position.segment])
        }
        if !canWrite {
            fixture.setFailsWrites(true)
            #expect(await scene.put(4, to: StoreScene.slot(4)) == nil)
        }
        #expect(try await scene.waiting(StoreScene.slot(1), StoreScene.slot(2), StoreScene.slot(3)) == [1, 3])
        fixture.setFailsWrites(false)
        await fixture.close()
    }

    @Test func `reads during constant compaction find every stored notification, and never a removed or replaced one`()
        async throws
    {
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock)
        let scene = StoreScene(fixture, clock: clock)
        let store = fixture.sqlite
        let steady = stride(from: 0, to: 400, by: 10).map { UInt64($0) }
        let ledger = Ledger()
        for number in 0..<400 as Range<UInt64> {
            store.put(Envelope(scene.notification(number + 1, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 400 }
        let first = Set(steady.compactMap { store.index.entry(StoreScene.slot($0))?.position })
        try await withThrowingTaskGroup(of: Int.self) { group in
            for reader in 0..<3 {
                group.addTask {
                    var reads = 0
                    while !ledger.isOver {
                        defer { ledger.noteRead(by: reader) }
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
            var round = 0
            // On a busy machine a reader may begin late.
            while round < 300 || ledger.readerCount < 3 {
                let count = scene.witness.heard.stored.count
                var put: [UInt64: UInt64] = [:]
                for slot in (0..<400 as Range<UInt64>).shuffled().prefix(60) where slot % 10 != 0 {
                    number += 1
                    if round % 3 == 0, let held = store.index.entry(StoreScene.slot(slot)) {
                        store.remove(held.slot, sequence: held.sequence, event: nil)
                        ledger.note([slot: number])
                    } else {
                        let envelope = Envelope(scene.notification(number, to: StoreScene.slot(slot)))
                        store.put(envelope, reason: .power, tag: nil)
                        put[slot] = number
                    }
                }
                let target = count + put.count
                await scene.witness.wait { $0.stored.count >= target }
                ledger.note(put)
                round += 1
            }
            ledger.end()
            for try await reads in group { #expect(reads > 0) }
        }
        // All of them were moved.
        let last = Set(steady.compactMap { store.index.entry(StoreScene.slot($0))?.position })
        #expect(first.isDisjoint(with: last))
        try await scene.restart()
        let found = try await scene.store.waiting(in: steady.map { StoreScene.slot($0) })
        #expect(Set(found.map(\.notification.id.low)) == Set(steady.map { $0 + 1 }))
        await fixture.close()
    }
}
