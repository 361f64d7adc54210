import Foundation
import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// Segments, tombstones and compaction.
struct SegmentTests {
    private let fixture: SQLiteFixture
    private let scene: StoreScene

    init() throws {
        let clock = ManualClock()
        fixture = try SQLiteFixture(clock: clock)
        scene = StoreScene(fixture, clock: clock)
    }

    /// Puts one notification into each slot, in one commit.
    private func putTogether(_ numbers: some Sequence<UInt64> & Sendable, payload: Int = 20) async throws {
        let envelopes = numbers.map { number in
            let text = String(repeating: "x", count: payload)
            return Envelope(scene.notification(number, to: StoreScene.slot(number), payload: text))
        }
        let before = scene.witness.heard.stored.count
        try await fixture.together { for envelope in envelopes { scene.store.put(envelope, reason: .power, tag: nil) } }
        await scene.witness.wait { $0.stored.count == before + envelopes.count }
    }

    private func remove(_ numbers: some Sequence<UInt64>) async throws {
        for number in numbers {
            let held = try #require(fixture.sqlite.index.entry(StoreScene.slot(number)))
            scene.store.remove(held.slot, sequence: held.sequence, event: nil)
        }
        try await fixture.sqlite.change { _, _ in }
    }

    /// A segment on disk.
    private struct Row: Hashable {
        let number: Int64
        let count: Int
        let deleted: Int
    }

    private func rows() async throws -> [Row] {
        try await fixture.sqlite.change { database, _ in
            let deleted = try Dictionary(
                uniqueKeysWithValues: GRDB.Row.fetchAll(database, sql: "SELECT segment, bits FROM tombstone").map {
                    let number: Int64 = $0["segment"]
                    return (number, try #require(Tombstones(stored: $0["bits"], for: number)).count)
                }
            )
            let sizes = try GRDB.Row.fetchAll(database, sql: "SELECT number, length(headers) FROM segment ORDER BY 1")
            let rows = sizes.map {
                Row(number: $0[0], count: $0[1] / NotificationHeader.byteCount, deleted: deleted[$0[0]] ?? 0)
            }
            #expect(Set(deleted.keys).isSubset(of: rows.map(\.number)))
            return rows
        }
    }

    private func waiting(_ numbers: some Sequence<UInt64>) async throws -> [UInt64] {
        try await scene.store.waiting(in: numbers.map { StoreScene.slot($0) }).map(\.notification.id.low)
    }

    @Test func `the notifications of one commit share segments of up to three pages`() async throws {
        try await putTogether(1...100, payload: 300)
        #expect(try await rows().map(\.count) == [30, 30, 30, 10])
        try await putTogether(201...203, payload: 5000)
        #expect(try await rows().suffix(2).map(\.count) == [2, 1])
        try await putTogether(204...205, payload: 13_000)
        #expect(try await rows().suffix(2).map(\.count) == [1, 1])
        try await putTogether(301...350, payload: 0)
        #expect(try await rows().suffix(2).map(\.count) == [48, 2])
        let all = Array(1...100) + Array(201...205) + Array(301...350) as [UInt64]
        #expect(try await waiting(all) == all)
        try await scene.restart()
        #expect(try await waiting(all) == all)
        await fixture.close()
    }

    @Test func `the content of a deleted segment is in no file`() async throws {
        let text = "only the owner should read this"
        let envelopes = (1...30 as ClosedRange<UInt64>).map { number in
            Envelope(
                scene.notification(number, to: StoreScene.slot(number), payload: String(repeating: text, count: 30))
            )
        }
        func isOnDisk() throws -> Bool {
            try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path).contains { name in
                let file = FileManager.default.contents(atPath: fixture.folder.path + "/" + name)
                return try #require(file).range(of: Data(text.utf8)) != nil
            }
        }
        try await fixture.together { for envelope in envelopes { scene.store.put(envelope, reason: .power, tag: nil) } }
        try await scene.restart()
        #expect(try isOnDisk())
        try await remove(1...30)
        try await scene.restart()
        #expect(try !isOnDisk())
        await fixture.close()
    }

    @Test func `a deletion adds a tombstone, and a segment without live notifications is deleted`() async throws {
        try await putTogether(1...8)
        try await remove([2, 3, 5])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 3)])
        try await remove([1])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 4)])
        try await scene.restart()
        #expect(scene.store.count == 4)
        #expect(try await waiting(1...8) == [4, 6, 7, 8])
        try await remove([4, 6, 7, 8])
        #expect(try await rows() == [])
        await fixture.close()
    }

    @Test func `compaction copies the live notifications of a segment, with their sequences`() async throws {
        try await putTogether(1...8)
        try await putTogether(11...18)
        let before = try await scene.store.waiting(in: [4, 6, 14].map { StoreScene.slot($0) })
        try await remove([1, 2, 3, 5, 7])
        #expect(try await rows().first == Row(number: 1, count: 8, deleted: 5))
        try await fixture.together {
            for number in [8, 11, 12, 13, 15, 17, 18] as [UInt64] {
                let held = fixture.sqlite.index.entry(StoreScene.slot(number))
                scene.store.remove(StoreScene.slot(number), sequence: held?.sequence ?? 0, event: nil)
            }
            scene.store.put(Envelope(scene.notification(16, to: StoreScene.slot(16))), reason: .power, tag: nil)
        }
        // The live ones of both, and the new one.
        #expect(try await rows() == [Row(number: 3, count: 4, deleted: 0)])
        for _ in 0..<2 {
            let found = try await scene.store.waiting(in: (1...18).map { StoreScene.slot($0) })
            #expect(found.map(\.notification.id.low) == [4, 6, 14, 16])
            #expect(found.prefix(3).map(\.sequence) == before.map(\.sequence))
            #expect(found.prefix(3).map(\.notification.uniqueID) == before.map(\.notification.uniqueID))
            try await scene.restart()
        }
        await fixture.close()
    }

    @Test func `a notification that is removed during compaction stays removed`() async throws {
        try await putTogether(1...8)
        // The index removes them at once. On disk, the last one goes with its segment.
        try await fixture.together {
            for number in [1, 2, 3, 4, 5, 6, 7] as [UInt64] {
                let held = fixture.sqlite.index.entry(StoreScene.slot(number))
                scene.store.remove(StoreScene.slot(number), sequence: held?.sequence ?? 0, event: nil)
            }
        }
        try await scene.restart()
        #expect(try await waiting(1...8) == [8])
        #expect(scene.store.count == 1)
        await fixture.close()
    }

    @Test func `a pending removal finds a notification that was moved meanwhile`() async throws {
        try await putTogether(1...8)
        let slot = StoreScene.slot(8)
        let held = try #require(fixture.sqlite.index.entry(slot))
        // Removed from the index; the request comes after the commit that moves it.
        #expect(fixture.sqlite.index.remove(slot, sequence: held.sequence))
        try await remove(1...6)
        #expect(try await rows() == [Row(number: 2, count: 2, deleted: 0)])
        #expect(fixture.sqlite.queue.append(.remove(slot, sequence: held.sequence, nil)))
        try await fixture.sqlite.change { _, _ in }
        #expect(try await rows() == [Row(number: 2, count: 2, deleted: 1)])
        try await scene.restart()
        #expect(try await waiting(1...8) == [7])
        await fixture.close()
    }

    @Test func `a removal of a replaced notification only records its event`() async throws {
        try await putTogether(1...8)
        let slot = StoreScene.slot(1)
        let held = try #require(fixture.sqlite.index.entry(slot))
        #expect(fixture.sqlite.index.remove(slot, sequence: held.sequence))
        await scene.put(21, to: slot)
        // It was removed, and not replaced.
        #expect(try await scene.states(1) == [.storedPower])
        try await remove([2, 3, 4, 5, 6, 7, 8])
        let event = JournalEvent(.delivered, scene.notification(1, to: slot), at: scene.now)
        #expect(fixture.sqlite.queue.append(.remove(slot, sequence: held.sequence, event)))
        try await fixture.sqlite.change { _, _ in }
        #expect(try await scene.states(1).last == .delivered)
        #expect(try await rows().map(\.deleted) == [0])
        try await scene.restart()
        #expect(try await waiting(1...8) == [21])
        await fixture.close()
    }

    @Test func `discarding a slot deletes a removed notification whose removal is pending`() async throws {
        try await putTogether(1...8)
        let slot = StoreScene.slot(1)
        let held = try #require(fixture.sqlite.index.entry(slot))
        #expect(fixture.sqlite.index.remove(slot, sequence: held.sequence))
        let now = scene.now
        try await fixture.sqlite.change { _, batch in batch.discard(slot, .discardedExpiredFromStorage, at: now) }
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 1)])
        let event = JournalEvent(.delivered, scene.notification(1, to: slot), at: now)
        #expect(fixture.sqlite.queue.append(.remove(slot, sequence: held.sequence, event)))
        try await fixture.sqlite.change { _, _ in }
        #expect(try await scene.states(1) == [.storedPower, .delivered])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 1)])
        try await scene.restart()
        #expect(scene.store.count == 7)
        await fixture.close()
    }

    @Test func `a notification that is replaced and discarded in one commit is deleted with the one it replaced`()
        async throws
    {
        try await putTogether(1...8)
        let slot = StoreScene.slot(1)
        let now = scene.now
        let discarding = WriteJob(
            run: { _, batch in
                batch.discard(slot, .discardedExpiredFromStorage, at: now)
                return {}
            },
            fail: { _ in }
        )
        try await fixture.together {
            scene.store.put(Envelope(scene.notification(21, to: slot)), reason: .power, tag: nil)
            #expect(fixture.sqlite.queue.append(.job(discarding)))
        }
        #expect(scene.store.count == 7)
        #expect(try await waiting(1...8) == Array(2...8))
        try await scene.restart()
        #expect(scene.store.count == 7)
        await fixture.close()
    }

    @Test func `a failed commit has moved and deleted nothing`() async throws {
        try await putTogether(1...8)
        try await remove([1, 2, 3, 4, 5])
        let before = try await rows()
        fixture.setFailsWrites(true)
        #expect(await scene.put(16, to: StoreScene.slot(6)) == nil)
        let held = try #require(fixture.sqlite.index.entry(StoreScene.slot(7)))
        scene.store.remove(held.slot, sequence: held.sequence, event: nil)
        #expect(await scene.put(16, to: StoreScene.slot(6)) == nil)
        #expect(try await waiting(6...8) == [6, 8])
        fixture.setFailsWrites(false)
        while !scene.store.isAccepting { await Task.yield() }
        try await fixture.sqlite.change { _, _ in }
        #expect(before == [Row(number: 1, count: 8, deleted: 5)])
        #expect(try await rows().map { $0.count - $0.deleted } == [2])
        #expect(try await waiting(6...8) == [6, 8])
        try await scene.restart()
        #expect(try await waiting(6...8) == [6, 8])
        await fixture.close()
    }

    @Test func `a damaged segment is not compacted, and its notifications are not delivered`() async throws {
        try await putTogether(1...8)
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "UPDATE segment SET bodies = zeroblob(3)")
        }
        try await remove([1, 2, 3, 4, 5, 6, 7])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 7)])
        #expect(try await waiting([8]) == [])
        try await remove([8])
        #expect(try await rows() == [])
        await fixture.close()
    }

    @Test(arguments: [
        "UPDATE tombstone SET bits = bits + 1", "UPDATE tombstone SET segment = 2",
        "UPDATE segment SET headers = x'00'",
        // A segment without its tombstone row, and a tombstone row without its segment.
        "UPDATE segment SET number = 5 WHERE number = 1", "DELETE FROM segment WHERE number = 1",
    ])
    func `invalid tombstones and headers abort the next start`(
        sql: String
    ) async throws {
        try await putTogether(1...8)
        try await remove([1])
        try await putTogether(11...18)
        try await fixture.sqlite.change { database, _ in try database.execute(sql: sql) }
        await fixture.close()
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(fixture.folder) }
        #expect(error.code == .damaged)
    }

    @Test(arguments: [[1, 2, 3, 4, 5, 6, 7], [1, 2]] as [[UInt64]])
    func `compaction of a missing segment leaves no tombstone row`(
        removedFirst: [UInt64]
    ) async throws {
        try await putTogether(1...8)
        if removedFirst.count == 2 { try await remove(removedFirst) }
        try await fixture.sqlite.change { database, _ in try database.execute(sql: "DELETE FROM segment") }
        try await remove((1...7).filter { removedFirst.count != 2 || $0 > 2 })
        let rows = try await fixture.sqlite.change { database, _ in
            try Int.fetchOne(database, sql: "SELECT count(*) FROM tombstone")
        }
        #expect(rows == 0)
        try await scene.restart()
        #expect(scene.store.count == 0)
        await fixture.close()
    }

    @Test(arguments: [true, false])
    func `tombstones beyond the segment are refused`(isRunning: Bool) async throws {
        try await putTogether(1...8)
        let bits = Tombstones([SegmentPosition(segment: 1, index: 8, count: 9)]).stored(for: 1)
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "INSERT INTO tombstone VALUES (1, ?)", arguments: [bits])
        }
        if isRunning {
            let held = try #require(fixture.sqlite.index.entry(StoreScene.slot(1)))
            scene.store.remove(held.slot, sequence: held.sequence, event: nil)
            await #expect(throws: StoreError.self) { try await fixture.sqlite.change { _, _ in } }
            #expect(fixture.notes.all.map(\.code) == [.damaged])
        }
        await fixture.close()
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(fixture.folder) }
        #expect(error.code == .damaged)
    }

    @Test func `no segment number is used after the last`() throws {
        let queue = try DatabaseQueue()
        try queue.writeWithoutTransaction { try Schema.current.apply(to: $0) }
        let last = SegmentPosition.numbers.upperBound
        try queue.write { database in
            try database.execute(sql: "INSERT INTO segment VALUES (?, x'', x'')", arguments: [last - 1])
            var table = try SegmentTable(database)
            try table.append(scene.notification(1, to: StoreScene.slot(1)), sequence: 1)
            try table.flush()
            #expect(table.positions.map(\.segment) == [last])
            try table.append(scene.notification(2, to: StoreScene.slot(2)), sequence: 2)
            let error = try #require(throws: DatabaseError.self) { try table.flush() }
            #expect(error.resultCode == .SQLITE_CORRUPT)
        }
    }

    /// Flips a bit in one header of segment 1.
    private func damageHeader(_ index: Int, byte: Int) async throws {
        try await fixture.sqlite.change { database, _ in
            var headers = try #require(try Data.fetchOne(database, sql: "SELECT headers FROM segment WHERE number = 1"))
            headers[index * NotificationHeader.byteCount + byte] ^= 4
            try database.execute(sql: "UPDATE segment SET headers = ? WHERE number = 1", arguments: [headers])
        }
    }

    /// Bytes of the sequence, the device's number, the end of storage, the length, and the check.
    @Test(arguments: [0, 8, 64, 66, 72, 76])
    func `a damaged header affects no other notification, is logged at every start, and stays`(
        byte: Int
    ) async throws {
        try await putTogether(1...8)
        try await damageHeader(3, byte: byte)
        #expect(try await waiting(1...8) == [1, 2, 3, 5, 6, 7, 8])
        await fixture.sqlite.close()
        for _ in 1...2 {
            let log = LogNotes()
            let store = try SQLiteStore(
                path: fixture.folder.path + "/store.sqlite",
                clock: ManualClock(),
                logger: log.logger,
                onFatal: { _ in }
            )
            #expect(log.all.filter { $0.contains("cannot be delivered") && $0.contains("segments=1") }.count == 1)
            #expect(store.count == 7)
            let found = try await store.waiting(in: (0...20).map { StoreScene.slot($0) })
            #expect(found.map(\.notification.id.low) == [1, 2, 3, 5, 6, 7, 8])
            await store.close()
        }
        try await scene.restart()
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 0)])
        try await remove([1, 2, 3, 5, 6, 7, 8])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 7)])
        await fixture.close()
    }

    @Test func `segments out of order are refused`() async throws {
        for first in [1, 9, 17] as [UInt64] { try await putTogether(first...first + 7) }
        let root = try await fixture.sqlite.change { database, _ in
            try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'segment'")
        }
        await fixture.sqlite.close()
        let path = fixture.folder.path + "/store.sqlite"
        var bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        let page = (try #require(root) - 1) * 4096
        // A cell begins with the length of its row, two bytes here, then its number.
        let third = page + Int(bytes[page + 12]) << 8 + Int(bytes[page + 13]) + 2
        #expect(bytes[third] == 3)
        // The second one's number: a deletion of the third would hit the second.
        bytes[third] = 2
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        #expect(throws: StoreError.self) { _ = try SQLiteFixture.open(fixture.folder) }
        await fixture.close()
    }

    @Test func `a removal between two puts of one commit deletes only the notification it names`() async throws {
        try await putTogether(1...8)
        let slot = StoreScene.slot(1)
        let held = try #require(fixture.sqlite.index.entry(slot))
        let before = scene.witness.heard.stored.count
        try await fixture.together {
            scene.store.put(Envelope(scene.notification(21, to: slot)), reason: .power, tag: nil)
            scene.store.remove(slot, sequence: held.sequence, event: nil)
            scene.store.put(Envelope(scene.notification(22, to: slot)), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == before + 2 }
        #expect(try await waiting(1...8) == Array(2...8) + [22])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 1), Row(number: 2, count: 1, deleted: 0)])
        try await scene.restart()
        #expect(scene.store.count == 8)
        await fixture.close()
    }

    @Test func `a header that is damaged at run time is not copied`() async throws {
        try await putTogether(1...8)
        // The provider's identifier, which neither the index nor the lengths depend on.
        try await damageHeader(7, byte: 24)
        try await remove([1, 2, 3, 4, 5, 6])
        #expect(try await rows() == [Row(number: 1, count: 8, deleted: 6)])
        #expect(try await waiting([7, 8]) == [7])
        try await scene.restart()
        #expect(try await waiting([7, 8]) == [7])
        #expect(scene.store.count == 1)
        await fixture.close()
    }

    @Test func `of two notifications for one slot, the newer one counts, in any order of the segments`() async throws {
        try await putTogether(1...4)
        try await putTogether(11...14)
        // As if the tombstone of the replaced one were lost, and the newer one were in the earlier segment.
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "UPDATE segment SET number = 3 WHERE number = 1")
            let headers = try #require(try Data.fetchOne(database, sql: "SELECT headers FROM segment WHERE number = 3"))
            let first = NotificationHeader(scene.notification(1, to: StoreScene.slot(12)), sequence: 1)
            var words: [UInt64] = []
            first.append(to: &words)
            let changed = words.withUnsafeBytes { Data($0) } + headers.dropFirst(NotificationHeader.byteCount)
            try database.execute(sql: "UPDATE segment SET headers = ? WHERE number = 3", arguments: [changed])
        }
        await fixture.sqlite.close()
        let store = try SQLiteFixture.open(fixture.folder)
        #expect(store.count == 7)
        #expect(try await store.waiting(in: [StoreScene.slot(12)]).map(\.notification.id.low) == [12])
        await store.close()
        let reopened = try SQLiteFixture.open(fixture.folder)
        #expect(reopened.count == 7)
        await reopened.close()
        await fixture.close()
    }

    @Test(arguments: [20, 400, 1900])
    func `after random deletions, more than a quarter of every segment is live, and the file stays bounded`(
        payload: Int
    ) async throws {
        let slots: UInt64 = 300
        var expected: [UInt64: UInt64] = [:]
        var generator = SystemRandomNumberGenerator()
        for round in 0..<60 as Range<UInt64> {
            let numbers = (0..<40 as Range<UInt64>).map { round * 1000 + $0 }
            let text = String(repeating: "x", count: payload)
            for number in numbers {
                // Most are soon replaced, some stay long.
                let slot = UInt64.random(in: 1...slots, using: &generator) * .random(in: 1...slots) / slots
                let envelope = Envelope(scene.notification(number + 1, to: StoreScene.slot(slot), payload: text))
                scene.store.put(envelope, reason: .power, tag: nil)
                expected[slot] = number + 1
            }
            await scene.witness.wait { $0.stored.count == Int(round + 1) * 40 }
            for (slot, _) in expected.filter({ _ in .random(in: 0..<10, using: &generator) == 0 }) {
                let held = try #require(fixture.sqlite.index.entry(StoreScene.slot(slot)))
                scene.store.remove(held.slot, sequence: held.sequence, event: nil)
                expected[slot] = nil
            }
            try await fixture.sqlite.change { _, _ in }
            let rows = try await rows()
            #expect(rows.allSatisfy { ($0.count - $0.deleted) * 4 > $0.count })
            #expect(rows.reduce(0) { $0 + $1.count - $1.deleted } == expected.count)
        }
        let segments = try await fixture.sqlite.change { database, _ in
            try Int.fetchOne(database, sql: "SELECT count(*) FROM segment") ?? 0
        }
        #expect(segments <= expected.count)
        for _ in 0..<2 {
            let found = try await scene.store.waiting(in: (0...slots).map { StoreScene.slot($0) })
            #expect(Set(found.map(\.notification.id.low)) == Set(expected.values))
            #expect(scene.store.count == expected.count)
            try await scene.restart()
        }
        await fixture.close()
    }
}
