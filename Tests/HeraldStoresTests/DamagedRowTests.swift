import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldStores

/// Rows with values that Herald never wrote, as after a flipped bit of the disk.
struct DamagedRowTests {
    private let folder: TemporaryFolder
    private let notes = LogNotes()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(slice: Int? = nil) throws -> SQLiteStore {
        var configuration = SQLiteFixture.configuration
        if let slice { configuration.maintenanceSlice = slice }
        return try SQLiteStore(
            path: folder.path + "/store.sqlite",
            configuration: configuration,
            clock: ManualClock(),
            logger: notes.logger,
            onFatal: { _ in }
        )
    }

    /// Runs SQL on the closed store while its tables accept values of any type.
    private func damage(_ sql: String) throws {
        func run(_ sql: String) throws {
            let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
            try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
            try queue.close()
        }
        func replace(_ old: String, _ new: String) -> String {
            "UPDATE sqlite_schema SET sql = replace(sql, '\(old)', '\(new)') WHERE type = 'table';"
        }
        let schema = "PRAGMA writable_schema = ON;"
        try run(schema + replace(") STRICT, WITHOUT ROWID", ") WITHOUT ROWID ") + replace(") STRICT", ") "))
        try run(sql)
        try run(
            schema + "UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                + " AND sql NOT LIKE '%WITHOUT ROWID%';"
                + replace(") WITHOUT ROWID ", ") STRICT, WITHOUT ROWID")
        )
    }

    private func event(_ number: UInt64, at moment: WallTime) -> JournalEvent {
        let id = NotificationID(high: 1, low: number)
        return JournalEvent(time: moment, id: id, uniqueID: id, slot: StoreScene.slot(1), state: .received)
    }

    private func leftOut(_ table: String) -> Int {
        notes.all.filter { $0.hasPrefix("left out a damaged row of the store") && $0.hasSuffix("table=\(table)") }.count
    }

    @Test func `all tables are strict`() async throws {
        let store = try open()
        let lax = try await store.readers.read {
            try String.fetchAll(
                $0,
                sql:
                    "SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"
            )
        }
        #expect(lax == [])
        await store.close()
    }

    @Test func `a row of the journal without a valid time goes with the row after it`() async throws {
        var store = try open()
        let clock = ManualClock()
        for hour in 1...3 {
            store.record([event(UInt64(hour), at: clock.now() + .seconds(3600 * hour))])
            _ = try await store.lines(matching: .app(AppNumber(1)), limit: 9)
        }
        await store.close()
        try damage("UPDATE journal SET last_time = 'x' WHERE position = (SELECT min(position) FROM journal)")
        store = try open()
        func trim(_ hours: Double) async throws -> [UInt64] {
            try await store.trim(before: clock.now() + .seconds(3600 * hours), maximumBytes: 1 << 20)
            return try await store.lines(matching: .app(AppNumber(1)), limit: 9).map(\.id.low)
        }
        #expect(try await trim(1.5) == [1, 2, 3])
        #expect(try await trim(2.5) == [3])
        #expect(store.damagedRows == 2 && leftOut("journal") == 1)
        await store.close()
    }

    @Test func `damaged channels and messages are left out, and a newer message takes their place`() async throws {
        var store = try open()
        let now = ManualClock().now()
        func channel(_ number: UInt64) -> BroadcastChannel {
            BroadcastChannel(
                id: ChannelID(high: 7, low: number),
                app: AppNumber(1),
                storage: .newest,
                created: now
            )
        }
        func message(_ number: UInt64, to channel: BroadcastChannel) -> Broadcast {
            Broadcast(
                channel: channel.id,
                app: channel.app,
                number: number,
                id: NotificationID(high: 1, low: number),
                uniqueID: NotificationID(high: 2, low: number),
                received: now,
                storedUntil: now + .seconds(60),
                priority: .immediate,
                payload: [1]
            )
        }
        for number in 1...4 as ClosedRange<UInt64> {
            try await store.createChannel(channel(number))
            try await store.keep(message(number, to: channel(number)), at: now)
        }
        await store.close()
        try damage(
            """
            UPDATE channel SET created = 'x' WHERE number = 1;
            UPDATE broadcast SET priority = 'x' WHERE channel = 2;
            UPDATE broadcast SET unique_id = x'00' WHERE channel = 3;
            """
        )
        store = try open()
        #expect(try await store.loadChannels().map(\.channel) == [channel(2), channel(3), channel(4)])
        #expect(try await store.loadChannels().map { $0.newest?.number } == [nil, nil, 4])
        try await store.keep(message(5, to: channel(2)), at: now)
        try await store.removeExpiredBroadcasts(at: now + .seconds(30))
        #expect(try await store.loadChannels().map { $0.newest?.number } == [5, nil, 4])
        try await store.removeExpiredBroadcasts(at: now + .seconds(61))
        try await store.deleteChannel(channel(3).id, at: now)
        #expect(
            try await store.loadChannels() == [channel(2), channel(4)].map { StoredChannel(channel: $0, newest: nil) }
        )
        #expect(leftOut("channel") == 1 && leftOut("broadcast") == 1)
        await store.close()
    }

    @Test func `damaged messages go when they expire, and delay no others`() async throws {
        var store = try open()
        let now = ManualClock().now()
        for number in 1...6 as ClosedRange<UInt64> {
            let channel = BroadcastChannel(
                id: ChannelID(high: 7, low: number),
                app: AppNumber(1),
                storage: .newest,
                created: now
            )
            let broadcast = Broadcast(
                channel: channel.id,
                app: channel.app,
                number: number,
                id: NotificationID(high: 1, low: number),
                uniqueID: NotificationID(high: 2, low: number),
                received: now,
                storedUntil: now + .seconds(number == 6 ? 600 : 60),
                priority: .immediate,
                payload: [1]
            )
            try await store.createChannel(channel)
            try await store.keep(broadcast, at: now)
        }
        await store.close()
        try damage(
            """
            UPDATE broadcast SET priority = 'x' WHERE channel IN (1, 2, 6);
            UPDATE broadcast SET unique_id = x'00' WHERE channel = 3;
            DELETE FROM channel WHERE number = 4;
            """
        )
        // A sweep that ended at the damaged ones would not come to the fifth.
        store = try open(slice: 2)
        func numbers() async throws -> [Int64] {
            let sql = "SELECT channel FROM broadcast ORDER BY channel"
            return try await store.readers.read { try Int64.fetchAll($0, sql: sql) }
        }
        try await store.removeExpiredBroadcasts(at: now + .seconds(59))
        #expect(try await numbers() == [1, 2, 3, 4, 5, 6] && store.damagedRows == 0)
        try await store.removeExpiredBroadcasts(at: now + .seconds(60))
        #expect(try await numbers() == [6] && store.damagedRows == 4)
        try await store.removeExpiredBroadcasts(at: now + .seconds(60))
        #expect(store.damagedRows == 4, "no row is counted for ever")
        let lines = try await store.lines(matching: .app(AppNumber(1)), limit: 99)
        #expect(lines.filter { $0.state == .discardedExpiredFromStorage }.map(\.id.low) == [5])
        await store.close()
    }

    @Test func `damaged rows of the registry are left out, and dead tokens stay dead`() async throws {
        var store = try open()
        let now = ManualClock().now()
        let (phone, tablet) = (try #require(DeviceID("phone")), try #require(DeviceID("tablet")))
        _ = try await store.number(of: phone)
        let tabletNumber = try await store.number(of: tablet)
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        _ = try await store.number(of: app, for: nil, at: now)
        for number in 1...4 as ClosedRange<UInt32> { _ = try await store.register(StoreScene.slot(1, number), at: now) }
        for number in 3...4 as ClosedRange<UInt32> {
            let slot = StoreScene.slot(1, number)
            try await store.unregister(slot, at: now)
            try await store.addFeedback(FeedbackRecord(slot: slot, generation: 0, time: now))
        }
        await store.close()
        try damage(
            """
            UPDATE device SET id = x'FF' WHERE id = 'phone';
            UPDATE app SET created = 'x';
            UPDATE registration SET generation = 'x' WHERE app IN (1, 3);
            UPDATE feedback SET generation = 'x' WHERE app = 3;
            """
        )
        store = try open()
        let snapshot = try await store.loadRegistry()
        #expect(snapshot.devices.map(\.1) == [tabletNumber] && snapshot.apps.isEmpty)
        #expect(snapshot.registrations.map(\.slot.app.value) == [2, 4])
        #expect(try await store.register(StoreScene.slot(1, 1), at: now).generation >= 1 << 16)
        #expect(try await store.feedback(for: AppNumber(3), limit: 9) == [])
        try await store.unregister(StoreScene.slot(1, 3), at: now)
        #expect(try await store.forgetEnded(DeviceNumber(1), keeping: 0) == [StoreScene.slot(1, 4)])
        _ = try await store.number(of: phone)
        for table in ["device", "app", "registration", "feedback"] { #expect(leftOut(table) == 1, "\(table)") }
        await store.close()
    }

    @Test func `a damaged number of an app refuses that app, and not the others`() async throws {
        var store = try open()
        let now = ManualClock().now()
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        _ = try await store.number(of: app, for: nil, at: now)
        await store.close()
        try damage("UPDATE app SET number = -1")
        store = try open()
        await #expect(throws: StoreError(.cannotWrite, "")) { _ = try await store.number(of: app, for: nil, at: now) }
        #expect(store.isAccepting)
        await store.close()
    }

    @Test(arguments: [
        ("UPDATE journal SET last_time = 'x'", true), ("UPDATE setting SET value = 'x' WHERE name = 'probes'", false),
    ])
    func `a start after a kill leaves damaged rows out where readers do, and refuses others`(
        damaged: (sql: String, starts: Bool)
    ) async throws {
        let store = try open()
        store.record([event(1, at: ManualClock().now())])
        await store.close()
        try damage(damaged.sql + "; UPDATE setting SET value = 0 WHERE name = 'is_clean'")
        if damaged.starts {
            await (try open()).close()
        } else {
            #expect(throws: StoreError(.damaged, "")) { _ = try open() }
        }
    }
}

extension SQLiteStore {
    /// Stores a numbered message.
    fileprivate func keep(_ broadcast: Broadcast, at moment: WallTime) async throws {
        try await withCheckedThrowingContinuation { continuation in
            keepBroadcast(broadcast, at: moment) { continuation.resume(with: $0) }
        }
    }
}
