import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// Failing writes of the SQLite store, beyond the conformance tests.
struct WriteFailureTests {
    private func scene(
        _ change: (inout SQLiteStoreConfiguration) -> Void = { _ in }
    ) throws -> (SQLiteFixture, StoreScene) {
        var configuration = SQLiteFixture.configuration
        change(&configuration)
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        return (fixture, StoreScene(fixture, clock: clock))
    }

    @Test(arguments: [ResultCode.SQLITE_IOERR_FSYNC.rawValue, ResultCode.SQLITE_IOERR_DIR_FSYNC.rawValue])
    func `after a failed sync the store accepts nothing, and reports a fatal error`(code: CInt) async throws {
        let (fixture, scene) = try scene()
        await scene.put(1, to: StoreScene.slot(1))
        fixture.disk.fail(.syncs, with: code, isLasting: false)
        #expect(await scene.put(2, to: StoreScene.slot(2)) == nil)
        #expect(fixture.notes.all.map(\.code) == [.syncFailed])
        #expect(!scene.store.isAccepting)
        // Still nothing when the disk syncs again.
        #expect(await scene.put(3, to: StoreScene.slot(3)) == nil)
        await #expect(throws: StoreError.self) { try await scene.store.register(StoreScene.slot(1), at: scene.now) }
        scene.store.record(
            JournalEvent(.discardedDisabled, scene.notification(4, to: StoreScene.slot(1)), at: scene.now),
            settling: Completion(handler: scene.witness, number: 4)
        )
        let heard = await scene.witness.wait { !$0.settled.isEmpty }
        #expect(heard.settled.map(\.outcome) == [.refused(.serviceUnavailable)])
        #expect(heard.failed.count == 2)
        #expect(fixture.notes.all.count == 1)
        #expect(try await scene.waiting(StoreScene.slot(1)) == [1])
        await fixture.close()
        #expect(fixture.notes.all.count == 1)
    }

    @Test func `a damaged page is a fatal error too`() async throws {
        let (fixture, scene) = try scene()
        fixture.disk.fail(.writes, with: SQLITE_CORRUPT, isLasting: false)
        #expect(await scene.put(1, to: StoreScene.slot(1)) == nil)
        #expect(fixture.notes.all.map(\.code) == [.damaged])
        #expect(!scene.store.isAccepting)
        await fixture.close()
    }

    @Test(arguments: ["", "-wal", "-shm"])
    func `a store whose files are deleted or replaced accepts nothing until they are back`(file: String) async throws {
        let (fixture, scene) = try scene()
        #expect(await scene.put(1, to: StoreScene.slot(1)) != nil)
        let path = fixture.folder.path + "/store.sqlite" + file
        fixture.sqlite.checkFiles()
        #expect(scene.store.isAccepting && fixture.sqlite.displacement == nil)
        for isReplaced in [false, true] {
            #expect(rename(path, path + ".moved") == 0)
            if isReplaced { try Data([1]).write(to: URL(fileURLWithPath: path)) }
            fixture.sqlite.checkFiles()
            #expect(!scene.store.isAccepting && fixture.sqlite.displacement?.code == .displaced)
            // Not even what was accepted before: its commit would be lost.
            #expect(await scene.put(2, to: StoreScene.slot(2)) == nil)
            await #expect(throws: StoreError.self) { try await scene.store.register(StoreScene.slot(3), at: scene.now) }
            #expect(rename(path + ".moved", path) == 0)
            fixture.sqlite.checkFiles()
            #expect(scene.store.isAccepting)
        }
        // The writer tries again after a while.
        while await scene.put(4, to: StoreScene.slot(4)) == nil {}
        #expect(fixture.notes.all.isEmpty)
        await fixture.close()
    }

    @Test func `a full database refuses puts until it has space`() async throws {
        let (fixture, scene) = try scene()
        let pages = try await fixture.sqlite.change { database, _ in
            try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        }
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
        }
        var accepted: [UInt64] = []
        for number in 1...60 as ClosedRange<UInt64> {
            if await scene.put(number, to: StoreScene.slot(number)) != nil { accepted.append(number) }
        }
        #expect(accepted.count < 60)
        #expect(
            try await scene.store.waiting(in: (1...60).map { StoreScene.slot($0) }).map(\.notification.id.low)
                == accepted
        )
        while true {
            do {
                try await fixture.sqlite.change { database, _ in
                    try database.execute(sql: "PRAGMA max_page_count = 1000000")
                }
                break
            } catch { await Task.yield() }
        }
        #expect(await scene.put(61, to: StoreScene.slot(61)) != nil)
        await fixture.close()
    }

    @Test func `what waits for a failing disk is written at the close if the disk works again`() async throws {
        let (fixture, scene) = try scene { $0.retryInterval = .seconds(3600) }
        let put = try #require(await scene.put(1, to: StoreScene.slot(1)))
        fixture.disk.fail(.writes, with: SQLITE_FULL)
        #expect(await scene.put(2, to: StoreScene.slot(2)) == nil)
        scene.store.remove(StoreScene.slot(1), sequence: put.sequence, event: nil)
        fixture.disk.heal()
        try await fixture.restart()
        #expect(fixture.sqlite.count == 0)
        await fixture.close()
    }

    @Test func `with little free space the store refuses puts, and removes notifications`() async throws {
        let (fixture, scene) = try scene { $0.minimumFreeSpace = 0 }
        let put = try #require(await scene.put(1, to: StoreScene.slot(1)))
        await fixture.close()
        var configuration = SQLiteFixture.configuration
        configuration.minimumFreeSpace = .max
        let short = try SQLiteFixture.open(fixture.folder, configuration)
        short.report(to: scene.witness)
        // The first commit checks the free space.
        _ = try await short.number(of: try #require(DeviceID("phone")))
        #expect(!short.isAccepting)
        short.remove(StoreScene.slot(1), sequence: put.sequence, event: nil)
        #expect(try await short.waiting(in: [StoreScene.slot(1)]).isEmpty)
        await short.close()
        let reopened = try SQLiteFixture.open(fixture.folder)
        #expect(reopened.count == 0)
        #expect(reopened.isAccepting)
        await reopened.close()
    }

    @Test func `too many pending puts close the gate until they are written`() async throws {
        let (fixture, scene) = try scene { configuration in
            configuration.backlogLimit = 100
            configuration.commitDelay = .milliseconds(20)
        }
        var number: UInt64 = 0
        while scene.store.isAccepting {
            number += 1
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        #expect(number >= 100)
        let count = Int(number)
        await scene.witness.wait { $0.stored.count == count }
        await scene.put(number + 1, to: StoreScene.slot(1))
        #expect(scene.store.isAccepting)
        await fixture.close()
    }

    @Test func `too many pending bytes close the gate too`() async throws {
        let (fixture, scene) = try scene { configuration in
            configuration.backlogByteLimit = 10_000
            configuration.commitDelay = .milliseconds(20)
        }
        var number: UInt64 = 0
        // Some may be written meanwhile, and no longer count.
        while scene.store.isAccepting {
            number += 1
            let notification = scene.notification(
                number,
                to: StoreScene.slot(number),
                payload: String(repeating: "x", count: 4000)
            )
            scene.store.put(Envelope(notification), reason: .power, tag: nil)
        }
        #expect(number >= 3)
        let count = Int(number)
        await scene.witness.wait { $0.stored.count == count }
        await scene.put(number + 1, to: StoreScene.slot(number + 1))
        #expect(scene.store.isAccepting)
        await fixture.close()
    }

    @Test func `while writes fail, the oldest events beyond a limit are lost, and no removal`()
        async throws
    {
        let (fixture, scene) = try scene { $0.retainedEvents = 10 }
        let puts = await withTaskGroup(of: StoredPut?.self) { group in
            for number in 1...30 as ClosedRange<UInt64> {
                group.addTask { await scene.put(number, to: StoreScene.slot(number)) }
            }
            return await group.reduce(into: [StoredPut]()) { if let put = $1 { $0.append(put) } }
        }
        fixture.setFailsWrites(true)
        #expect(await scene.put(50, to: StoreScene.slot(50)) == nil)
        for put in puts { scene.store.remove(put.envelope.notification.slot, sequence: put.sequence, event: nil) }
        for number in 1...100 as ClosedRange<UInt64> {
            scene.store.record([
                JournalEvent(.delivered, scene.notification(number, to: StoreScene.slot(77)), at: scene.now)
            ])
        }
        #expect(await scene.put(51, to: StoreScene.slot(50)) == nil)
        fixture.setFailsWrites(false)
        while !scene.store.isAccepting { await Task.yield() }
        try await scene.restart()
        #expect(scene.store.count == 0)
        let lines = try await scene.store.lines(matching: .device(DeviceNumber(77)), limit: 1000)
        #expect(lines.count <= 10)
    }

    @Test func `a closed store refuses puts, throws for registrations, and can be closed again`() async throws {
        let (fixture, scene) = try scene()
        await scene.put(1, to: StoreScene.slot(1))
        await fixture.sqlite.close()
        #expect(!scene.store.isAccepting)
        #expect(await scene.put(2, to: StoreScene.slot(1)) == nil)
        await #expect(throws: StoreError.closed) { try await scene.store.register(StoreScene.slot(1), at: scene.now) }
        await #expect(throws: StoreError.closed) { try await scene.store.waiting(in: [StoreScene.slot(1)]) }
        await #expect(throws: StoreError.closed) { try await scene.store.loadRegistry() }
        scene.store.record([JournalEvent(.received, scene.notification(1, to: StoreScene.slot(1)), at: scene.now)])
        await fixture.close()
    }

    @Test func `closing commits all pending requests`() async throws {
        let (fixture, scene) = try scene()
        for number in 1...2000 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        scene.store.record([JournalEvent(.received, scene.notification(9999, to: StoreScene.slot(1)), at: scene.now)])
        await fixture.sqlite.close()
        #expect(scene.witness.heard.stored.count == 2000)
        try await scene.restart()
        #expect(scene.store.count == 2000)
        #expect(try await scene.states(9999) == [.received])
        await fixture.close()
    }

    @Test func `a released store ends its thread`() async throws {
        let folder = try TemporaryFolder()
        weak var queue: WriteQueue?
        do {
            let store = try SQLiteFixture.open(folder)
            queue = store.queue
            #expect(queue != nil)
        }
        while queue != nil { await Task.yield() }
    }
}
