import Foundation
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// A small file system of its own, which only the superuser can make.
private final class SmallDisk {
    let path: String

    init?(megabytes: Int) {
        path = NSTemporaryDirectory() + "herald-disk-" + UUID().uuidString
        mkdir(path, 0o700)
        guard mount("herald-test", path, "tmpfs", 0, "size=\(megabytes)m") == 0 else {
            rmdir(path)
            return nil
        }
    }

    deinit {
        umount(path)
        rmdir(path)
    }
}

@Suite(.enabled(if: geteuid() == 0, "only the superuser can mount a small disk"))
struct FullDiskTests {
    private func open(
        _ disk: SmallDisk,
        _ witness: StoreWitness,
        _ change: (inout SQLiteStoreConfiguration) -> Void
    ) throws -> SQLiteStore {
        var configuration = SQLiteFixture.configuration
        configuration.freeSpaceInterval = .zero
        change(&configuration)
        let store = try SQLiteStore(
            path: disk.path + "/store.sqlite",
            configuration: configuration,
            clock: ManualClock(),
            logger: .silent,
            onFatal: { Issue.record($0) }
        )
        store.report(to: witness)
        return store
    }

    private func envelope(_ number: UInt64) -> Envelope {
        Envelope(
            HeraldModel.Notification(
                id: NotificationID(high: 0xA, low: number),
                uniqueID: NotificationID(high: 0xB, low: number),
                slot: StoreScene.slot(number),
                received: WallTime(seconds: 1),
                storedUntil: WallTime(seconds: 1_000_000),
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: [UInt8](repeating: 0x78, count: 4000)
            )
        )
    }

    private func putAndWait(_ number: UInt64, _ store: SQLiteStore, _ witness: StoreWitness) async -> Bool {
        let envelope = envelope(number)
        store.put(envelope, reason: .power, tag: nil)
        let heard = await witness.wait { heard in
            heard.stored.contains { $0.envelope === envelope } || heard.failed.contains { $0 === envelope }
        }
        return heard.stored.contains { $0.envelope === envelope }
    }

    @Test func `with a full disk the store refuses puts, keeps acknowledged ones, and recovers`() async throws {
        let disk = try #require(SmallDisk(megabytes: 12), "tmpfs cannot be mounted")
        let filler = disk.path + "/filler"
        try Data(count: 6 << 20).write(to: URL(fileURLWithPath: filler))
        let witness = StoreWitness()
        let store = try open(disk, witness) { $0.minimumFreeSpace = 0 }
        var stored: [UInt64] = []
        var number: UInt64 = 0
        while store.isAccepting, number < 3000 {
            number += 1
            if await putAndWait(number, store, witness) { stored.append(number) }
        }
        #expect(number < 3000)
        #expect(stored.count > 100)
        // None, unless a checkpoint has freed a little space meanwhile.
        if await putAndWait(5000, store, witness) { stored.append(5000) }
        try FileManager.default.removeItem(atPath: filler)
        while !store.isAccepting { await Task.yield() }
        #expect(await putAndWait(5001, store, witness))
        stored.append(5001)
        await store.close()
        let reopened = try open(disk, witness) { $0.minimumFreeSpace = 0 }
        let slots = ((1...number) + [5000, 5001]).map { StoreScene.slot($0) }
        #expect(try await reopened.waiting(in: slots).map(\.notification.id.low) == stored)
        await reopened.close()
    }

    @Test func `the store refuses puts before the disk is full, and no put fails`() async throws {
        let disk = try #require(SmallDisk(megabytes: 12), "tmpfs cannot be mounted")
        let witness = StoreWitness()
        let store = try open(disk, witness) { $0.minimumFreeSpace = 4 << 20 }
        var number: UInt64 = 0
        while store.isAccepting, number < 3000 {
            number += 1
            #expect(await putAndWait(number, store, witness))
        }
        #expect(number < 3000)
        // Stored notifications can be read and removed.
        let found = try await store.waiting(in: [StoreScene.slot(1)])
        let first = try #require(found.first)
        store.remove(StoreScene.slot(1), sequence: first.sequence, event: nil)
        await store.close()
        #expect(witness.heard.failed.isEmpty)
        let reopened = try open(disk, witness) { $0.minimumFreeSpace = 0 }
        #expect(reopened.count == Int(number) - 1)
        await reopened.close()
    }
}
