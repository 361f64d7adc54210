import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// Fault injection as in SQLite's own tests: each disk call of a workload fails in turn.
///
/// A round fails every eighth call, and the next round begins one call later. `make test` runs one round, chosen at random;
/// `make soak PART=sweep` runs them all (HERALD_SWEEP_ROUNDS, as FIRST:COUNT).
struct FaultSweepTests {
    private static let stride = 8
    /// The first call that each round fails.
    private static let starts: [Int] = {
        let text = ProcessInfo.processInfo.environment["HERALD_SWEEP_ROUNDS"] ?? "\(Int.random(in: 0..<stride)):1"
        let numbers = text.split(separator: ":").compactMap { Int($0) }
        guard numbers.count == 2, numbers[0] >= 0, numbers[1] > 0 else { return [] }
        return (numbers[0]..<numbers[0] + numbers[1]).map { $0 % stride }
    }()

    struct Fault: CustomTestStringConvertible {
        let kind: FaultyDisk.Kind
        let code: ResultCode
        /// Whether every later call fails too, until the disk heals.
        var isLasting = false

        var testDescription: String { "\(kind) \(code.rawValue)\(isLasting ? " lasting" : "")" }
    }

    @Test(arguments: [
        Fault(kind: .writes, code: .SQLITE_FULL), Fault(kind: .writes, code: .SQLITE_FULL, isLasting: true),
        Fault(kind: .writes, code: .SQLITE_IOERR_WRITE), Fault(kind: .syncs, code: .SQLITE_IOERR_FSYNC),
    ])
    func `whichever call fails, every acknowledged change is there, and no refused one`(
        fault: Fault
    ) async throws {
        #expect(!Self.starts.isEmpty, "HERALD_SWEEP_ROUNDS is FIRST:COUNT")
        for start in Self.starts {
            var count = start
            // The round ends after the last call. The number of calls differs by a few between runs.
            var runsWithoutFailure = 0
            while runsWithoutFailure < 3 {
                let hasFailed = try await FaultSweepTests.run(fault, after: count)
                runsWithoutFailure = hasFailed ? 0 : runsWithoutFailure + 1
                count += Self.stride
            }
            #expect(count > (fault.kind == .writes ? 120 : 20), "round \(start)")
        }
    }

    /// Runs the workload on a disk that fails after `count` calls.
    /// - Returns: Whether any call failed.
    private static func run(_ fault: Fault, after count: Int) async throws -> Bool {
        var configuration = SQLiteFixture.configuration
        configuration.checkpointPages = 4
        configuration.gapCheckpointPages = 2
        configuration.journalDelay = .zero
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        let scene = StoreScene(fixture, clock: clock)
        fixture.disk.fail(fault.kind, with: fault.code.rawValue, after: count, isLasting: fault.isLasting)
        var ledger = Ledger()
        await ledger.work(scene)
        let heard = scene.witness.heard
        #expect(heard.stored.count + heard.failed.count == Ledger.putCount)
        // The gate is shut a moment after a sync has failed, which may be one between two commits.
        let gateFollows = fault.kind != .writes
        while gateFollows, scene.store.isAccepting, fixture.disk.calls.failures > 0 { await Task.yield() }
        let hasFailed = fixture.disk.calls.failures > 0
        if fault.kind == .writes {
            // A disk that writes again is used again, without a restart.
            if fault.isLasting { fixture.disk.heal() }
            // The call that fails may be one of this very put.
            var isStored = false
            for _ in 0..<2 where !isStored {
                while !scene.store.isAccepting { await Task.yield() }
                isStored = await ledger.put(99, StoreScene.slot(9), scene)
            }
            #expect(isStored)
            #expect(fixture.notes.all.isEmpty)
        } else {
            // A disk that does not sync is believed never again, and the process is told once.
            #expect(scene.store.isAccepting == !hasFailed)
            // Said a moment after the gate is shut.
            while hasFailed, fixture.notes.all.isEmpty { await Task.yield() }
            #expect(fixture.notes.all.map(\.code) == (hasFailed ? [.syncFailed] : []))
        }
        try await ledger.check(scene, isExact: fault.kind == .writes || !hasFailed)
        // The end may fail too.
        await fixture.sqlite.close()
        let hasFailedEver = fixture.disk.calls.failures > 0
        fixture.disk.heal()
        try await scene.restart()
        try await ledger.check(scene, isExact: fault.kind == .writes || !hasFailedEver)
        #expect(await ledger.put(100, StoreScene.slot(10), scene))
        await fixture.close()
        return hasFailedEver
    }

    /// The acknowledged changes.
    private struct Ledger {
        private static let singleCount = 16
        private static let segmentCount = 8
        static let putCount = singleCount + segmentCount

        /// The notification of each slot; 0 for an emptied slot.
        private var newest: [Slot: UInt64] = [:]
        private var registrations: [Slot: UInt32] = [:]
        /// Slots whose discarding was refused.
        private var uncertain: Set<Slot> = []

        /// A little of every kind of write.
        mutating func work(_ scene: StoreScene) async {
            for number in 1...UInt64(Ledger.singleCount) {
                let slot = StoreScene.slot(number % 5)
                await put(number, slot, scene)
                switch number % 4 {
                case 0: await remove(slot, scene)
                case 1: await register(slot, scene)
                case 2: await unregister(slot, scene)
                default:
                    scene.store.record([
                        JournalEvent(.received, scene.notification(number, to: slot), at: scene.now)
                    ])
                    try? await scene.store.trim(before: scene.now, maximumBytes: 1000)
                }
            }
            await workOnBundle(scene)
        }

        /// Puts several at once, which share a segment, then removes one after the other until it is compacted.
        private mutating func workOnBundle(_ scene: StoreScene) async {
            let numbers = UInt64(Ledger.singleCount + 1)...UInt64(Ledger.putCount)
            for number in numbers {
                let notification = scene.notification(number, to: StoreScene.slot(number))
                scene.store.put(Envelope(notification), reason: .power, tag: nil)
            }
            let heard = await scene.witness.wait { $0.stored.count + $0.failed.count == Ledger.putCount }
            for put in heard.stored where numbers.contains(put.envelope.notification.id.low) {
                newest[put.envelope.notification.slot] = put.envelope.notification.id.low
            }
            for number in numbers.dropLast() {
                await remove(StoreScene.slot(number), scene)
                // Reading the journal commits pending requests.
                _ = try? await scene.lines(number)
            }
        }

        @discardableResult
        mutating func put(_ number: UInt64, _ slot: Slot, _ scene: StoreScene) async -> Bool {
            guard await scene.put(number, to: slot) != nil else { return false }
            newest[slot] = number
            uncertain.remove(slot)
            return true
        }

        private mutating func remove(_ slot: Slot, _ scene: StoreScene) async {
            guard let held = try? await scene.store.waiting(in: [slot]).first else { return }
            scene.store.remove(slot, sequence: held.sequence, event: nil)
            newest[slot] = 0
        }

        private mutating func register(_ slot: Slot, _ scene: StoreScene) async {
            let isAnew = registrations[slot] == nil
            if isAnew { uncertain.insert(slot) }
            guard let registration = try? await scene.store.register(slot, at: scene.now) else { return }
            uncertain.remove(slot)
            registrations[slot] = registration.generation
            // What the slot held was of an earlier registration.
            if isAnew { newest[slot] = 0 }
        }

        private mutating func unregister(_ slot: Slot, _ scene: StoreScene) async {
            let isRegistered = registrations[slot] != nil
            uncertain.insert(slot)
            guard (try? await scene.store.unregister(slot, at: scene.now)) != nil else { return }
            uncertain.remove(slot)
            guard isRegistered else { return }
            registrations[slot] = nil
            newest[slot] = 0
        }

        /// After a failed sync, refused changes may be there, and changes without a waiting caller may be lost.
        func check(_ scene: StoreScene, isExact: Bool) async throws {
            for (slot, number) in newest {
                let found = try await scene.waiting(slot).first ?? 0
                if isExact {
                    #expect(found == number)
                } else {
                    #expect(found >= number || number == 0 || uncertain.contains(slot))
                }
            }
            guard isExact else { return }
            let found = try await scene.store.loadRegistry().registrations.filter(\.isLive)
            #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.slot, $0.generation) }) == registrations)
        }
    }
}
