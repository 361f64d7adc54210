import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

struct TallyTests {
    private static let alert = JournalTraits(pushType: .alert, priority: .immediate)

    private static func scene(
        _ change: (inout SQLiteStoreConfiguration) -> Void = { _ in }
    ) throws -> (SQLiteFixture, StoreScene) {
        var configuration = SQLiteFixture.configuration
        // No commit writes the counts by itself.
        configuration.tallyInterval = .seconds(3600)
        change(&configuration)
        let clock = ManualClock()
        let fixture = try SQLiteFixture(clock: clock, configuration: configuration)
        return (fixture, StoreScene(fixture, clock: clock))
    }

    /// All hours in which these tests have lines.
    ///
    /// They are read in slices, and each is a wait for another thread.
    private static let hours: Range<Int64> = {
        let first = TallyKey.hour(of: ManualClock().now())
        return first..<first + TallyTable.keptHours + 100
    }()

    private static func counts(_ store: SQLiteStore) async throws -> [TallyKey: Int] {
        try await store.tallies(in: hours) { $0 }.values.reduce(into: [:]) { $0.merge($1) { $0 + $1 } }
    }

    /// The counts of the journal's own lines.
    private static func expected(_ events: [JournalEvent]) -> [TallyKey: Int] {
        events.reduce(into: [:]) { $0[TallyKey($1), default: 0] += 1 }
    }

    private static func rows(_ store: SQLiteStore) async throws -> Int {
        try await store.change { database, _ in try Int.fetchOne(database, sql: "SELECT count(*) FROM tally") ?? 0 }
    }

    private static func key(_ scene: StoreScene, _ state: JournalState, _ traits: JournalTraits = alert) -> TallyKey {
        TallyKey(hour: TallyKey.hour(of: scene.now), app: .app(AppNumber(1)), traits: traits, state: state)
    }

    @Test func `lines count by hour, app, traits and state, also those of notifications on disk`() async throws {
        let (fixture, scene) = try Self.scene()
        for number in 1...4 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        // The index has the traits of what is on disk, also after a restart.
        await scene.put(5, to: StoreScene.slot(1))
        try await scene.restart()
        await scene.put(6, to: StoreScene.slot(2))
        let first = try await Self.counts(fixture.sqlite)
        #expect(first == [Self.key(scene, .storedDeviceOffline): 6, Self.key(scene, .replaced): 2])
        let expires = Self.key(scene, .discardedExpiredFromStorage).hour + 2
        scene.clock.advance(by: .seconds(7200))
        _ = try await scene.store.removeExpired(at: scene.now, limit: 100)
        let later = try await Self.counts(fixture.sqlite).filter { $0.key.hour == expires }
        #expect(later == [Self.key(scene, .discardedExpiredFromStorage): 4])
        await fixture.close()
    }

    private static let moment = ManualClock().now()

    private static func refused(_ environment: PushEnvironment, app: AppNumber? = nil) -> JournalEvent {
        JournalEvent(
            refused: JournalRefusal(reason: .badTopic, explanation: "", topic: nil, environment: environment),
            id: NotificationID(high: 1, low: 1),
            device: nil,
            app: app,
            at: moment,
            request: JournalRequest(pushType: .voip, priority: nil)
        )
    }

    @Test func `refused requests count, by environment where there is no app`() async throws {
        let (fixture, _) = try Self.scene()
        let lines = [
            Self.refused(.sandbox), Self.refused(.production), Self.refused(.sandbox),
            Self.refused(.sandbox, app: AppNumber(.max)),
        ]
        fixture.sqlite.record(lines)
        let counts = try await Self.counts(fixture.sqlite)
        #expect(counts == Self.expected(lines))
        func key(_ app: TallyApp) -> TallyKey {
            let traits = JournalTraits(pushType: .voip, priority: nil)
            let hour = TallyKey.hour(of: Self.moment)
            return TallyKey(hour: hour, app: app, traits: traits, state: .refusedByService)
        }
        #expect(counts == [key(.none(.sandbox)): 2, key(.none(.production)): 1, key(.app(AppNumber(.max))): 1])
        await fixture.close()
    }

    @Test func `after a crash every line counts once, whether its count was on disk or not`() async throws {
        let (fixture, scene) = try Self.scene()
        for number in 1...3 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(1)) }
        let unwritten = try fixture.folder.copy()
        let three = try await Self.counts(fixture.sqlite)
        #expect(three == [Self.key(scene, .storedDeviceOffline): 3, Self.key(scene, .replaced): 2])
        await scene.put(4, to: StoreScene.slot(1))
        let halfWritten = try fixture.folder.copy()
        for (folder, counts) in [
            (unwritten, three),
            (halfWritten, [Self.key(scene, .storedDeviceOffline): 4, Self.key(scene, .replaced): 3]),
        ] {
            // The counts that the first start wrote are not added again.
            for _ in 1...2 {
                let store = try SQLiteFixture.open(folder, clock: scene.clock)
                #expect(try await Self.counts(store) == counts)
                await store.close()
            }
        }
        await fixture.close()
    }

    @Test func `counts are exact over full chunks of the journal, and after a crash there`() async throws {
        let (fixture, scene) = try Self.scene()
        var all: [JournalEvent] = []
        var position: Int64 = 0
        let words = String(repeating: "x", count: JournalRefusal.longestExplanation - 10)
        while position < JournalDigest.start(of: 2) {
            let next = (0..<2000).map { number in
                JournalEvent(
                    refused: JournalRefusal(
                        reason: .badTopic,
                        explanation: words + "\(all.count + number)",
                        topic: nil,
                        environment: .production
                    ),
                    id: NotificationID(high: 1, low: UInt64(all.count + number)),
                    device: nil,
                    app: AppNumber(UInt32(number % 7) + 1),
                    at: scene.now + .seconds(all.count / 3),
                    request: JournalRequest(pushType: PushType.allCases[number % 3])
                )
            }
            fixture.sqlite.record(next)
            all += next
            position = try await fixture.sqlite.change { database, _ in
                try Int64.fetchOne(database, sql: "SELECT max(position) FROM journal") ?? 0
            }
        }
        let crashed = try SQLiteFixture.open(try fixture.folder.copy(), clock: scene.clock)
        #expect(try await Self.counts(crashed) == Self.expected(all))
        await crashed.close()
        #expect(try await Self.rows(fixture.sqlite) > 0)
        #expect(try await Self.counts(fixture.sqlite) == Self.expected(all))
        await fixture.close()
    }

    @Test func `a commit that fails counts nothing twice`() async throws {
        let (fixture, scene) = try Self.scene { $0.tallyInterval = .zero }
        await scene.put(1, to: StoreScene.slot(1))
        fixture.setFailsWrites(true)
        scene.store.record([JournalEvent(.delivered, scene.notification(1, to: StoreScene.slot(1)), at: scene.now)])
        await scene.put(2, to: StoreScene.slot(2))
        fixture.setFailsWrites(false)
        while await scene.put(3, to: StoreScene.slot(3)) == nil {}
        let counts = try await Self.counts(fixture.sqlite)
        #expect(counts == [Self.key(scene, .storedDeviceOffline): 2, Self.key(scene, .delivered): 1])
        await fixture.close()
    }

    @Test func `counts are written at their interval, and old ones are deleted in parts`() async throws {
        let (fixture, scene) = try Self.scene {
            $0.tallyInterval = .zero
            $0.maintenanceSlice = 2
        }
        let slot = StoreScene.slot(1)
        for hour in 0..<3 {
            let time = scene.now + .seconds(3600 * hour)
            scene.store.record([JournalEvent(.delivered, scene.notification(1, to: slot), at: time)])
        }
        #expect(try await Self.counts(fixture.sqlite).count == 3)
        scene.clock.advance(by: .seconds(86_400 * 91))
        var remaining: [Int] = []
        for number in 2...3 as ClosedRange<UInt64> {
            scene.store.record([JournalEvent(.delivered, scene.notification(number, to: slot), at: scene.now)])
            remaining.append(try await Self.counts(fixture.sqlite).count)
        }
        #expect(remaining == [2, 1])
        await fixture.close()
    }
}
