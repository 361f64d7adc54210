import Foundation
import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// A store as the second format left it, with a row for each notification, is carried over at its first opening.
struct FormerStoreTests {
    private static let tables = """
        CREATE TABLE mailbox (sequence INTEGER PRIMARY KEY, device INTEGER NOT NULL, app INTEGER NOT NULL,
            stored_until INTEGER, id BLOB NOT NULL, unique_id BLOB NOT NULL, received INTEGER NOT NULL,
            priority INTEGER NOT NULL, push_type INTEGER NOT NULL, collapse_id TEXT, checksum INTEGER NOT NULL,
            payload BLOB NOT NULL);
        CREATE TABLE journal (position INTEGER PRIMARY KEY, first_time INTEGER NOT NULL, last_time INTEGER NOT NULL,
            fingerprints BLOB NOT NULL, events BLOB NOT NULL);
        CREATE TABLE device (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
            is_saving_power INTEGER NOT NULL DEFAULT 0, session TEXT);
        CREATE TABLE app (number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, environment TEXT NOT NULL,
            UNIQUE (topic, environment));
        CREATE TABLE registration (device INTEGER NOT NULL, app INTEGER NOT NULL, generation INTEGER NOT NULL,
            is_live INTEGER NOT NULL, registered INTEGER NOT NULL, ended INTEGER, is_enabled INTEGER NOT NULL,
            PRIMARY KEY (device, app)) WITHOUT ROWID;
        CREATE TABLE feedback (app INTEGER NOT NULL, time INTEGER NOT NULL, device INTEGER NOT NULL,
            generation INTEGER NOT NULL, PRIMARY KEY (app, time, device)) WITHOUT ROWID;
        CREATE UNIQUE INDEX feedback_of_registration ON feedback (device, app);
        CREATE TABLE setting (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE channel (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, app INTEGER NOT NULL,
            storage INTEGER NOT NULL, created INTEGER NOT NULL);
        CREATE TABLE broadcast (channel INTEGER PRIMARY KEY, number INTEGER NOT NULL, id BLOB NOT NULL,
            unique_id BLOB NOT NULL, received INTEGER NOT NULL, stored_until INTEGER NOT NULL, priority INTEGER NOT NULL,
            payload BLOB NOT NULL);
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('1: mailbox, journal, registry'), ('2: channels');
        INSERT INTO setting VALUES ('is_clean', 1), ('sequence_ceiling', 500), ('probes', 0);
        INSERT INTO device (number, id) VALUES (77, 'phone');
        PRAGMA user_version = 2;
        """

    private let folder: TemporaryFolder
    private let written: [HeraldModel.Notification]

    /// Makes a store of the second format with 200 notifications of many sizes, each with its checksum, and three lines of
    /// the journal in two rows.
    init() throws {
        folder = try TemporaryFolder()
        written = (1...200 as ClosedRange<UInt64>).map { number in
            HeraldModel.Notification(
                id: NotificationID(high: 0xA, low: number),
                uniqueID: NotificationID(high: 0xB, low: number),
                slot: StoreScene.slot(number, UInt32(number % 3 + 1)),
                received: WallTime(milliseconds: Int64(number)),
                storedUntil: number % 5 == 0 ? nil : WallTime(milliseconds: 1_000_000 + Int64(number)),
                priority: [.immediate, .conserving, .low][Int(number % 3)],
                pushType: PushType.allCases[Int(number) % PushType.allCases.count],
                collapseID: number % 4 == 0 ? "collapse \(number)" : nil,
                payload: [UInt8](repeating: UInt8(number), count: Int(number * number % 5000))
            )
        }
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try queue.writeWithoutTransaction { database in
            try database.execute(
                sql: "PRAGMA application_id = \(DatabaseFile.applicationID); PRAGMA journal_mode = WAL"
            )
            try database.execute(sql: FormerStoreTests.tables)
            try database.inTransaction {
                for (place, one) in written.enumerated() {
                    try FormerStoreTests.insert(one, UInt64(place) + 101, database)
                }
                for (position, count) in [(0, 1), (88, 2)] {
                    try FormerStoreTests.insertLines(count, position, database)
                }
                return .commit
            }
        }
        try queue.close()
    }

    private static func insert(
        _ notification: HeraldModel.Notification,
        _ sequence: UInt64,
        _ database: Database
    ) throws {
        func bytes(_ id: NotificationID) -> Data {
            withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { Data($0) }
        }
        try database.execute(
            sql: "INSERT INTO mailbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            arguments: [
                Int64(sequence), Int64(notification.slot.device.value), Int64(notification.slot.app.value),
                notification.storedUntil?.milliseconds, bytes(notification.id), bytes(notification.uniqueID),
                notification.received.milliseconds, Int64(notification.priority.rawValue),
                Int64(notification.pushType.storedCode), notification.collapseID,
                Int64(bitPattern: Head.checksum(notification, sequence: sequence)), Data(notification.payload),
            ]
        )
    }

    private static let idOfLines = NotificationID(high: 0x0102_0304_0506_0708, low: .max)

    private static func insertLines(_ count: Int, _ position: Int, _ database: Database) throws {
        func data(_ bytes: some Sequence<UInt8>) -> Data { Data(repeatElement(Array(bytes), count: count).joined()) }
        try database.execute(
            sql: "INSERT INTO journal VALUES (?, -5, -5, ?, ?)",
            arguments: [position, data(repeatElement(7, count: 16)), data(FormerJournalRowTests.record)]
        )
    }

    /// Everything that was written is there, and what is put goes on behind it.
    private func check(_ folder: TemporaryFolder) async throws {
        let store = try SQLiteFixture.open(folder)
        let found = try await store.waiting(in: written.map(\.slot))
        #expect(found.map(\.sequence) == Array(101...300))
        for (one, original) in zip(found.map(\.notification), written) {
            #expect(one.id == original.id && one.uniqueID == original.uniqueID && one.slot == original.slot)
            #expect(one.received == original.received && one.storedUntil == original.storedUntil)
            #expect(one.priority == original.priority && one.pushType == original.pushType)
            #expect(one.collapseID == original.collapseID && one.payload == original.payload)
        }
        #expect(try await store.number(of: try #require(DeviceID("phone"))) == DeviceNumber(77))
        let (version, tables) = try await store.change { database, _ in
            (
                try Int.fetchOne(database, sql: "PRAGMA user_version"),
                try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE name = 'mailbox'")
            )
        }
        #expect(version == Int(Schema.version) && tables == [])
        let witness = StoreWitness()
        store.report(to: witness)
        store.put(Letter(written[0]), reason: .power, tag: nil)
        let heard = await witness.wait { !$0.stored.isEmpty }
        #expect(heard.stored.map(\.sequence) == [500])
        #expect(store.count == 200)
        for query in [
            .notification(FormerStoreTests.idOfLines), .notification(NotificationID(high: 3, low: 4)),
            .device(DeviceNumber(.max)), .app(AppNumber(.max)),
        ] as [JournalQuery] {
            #expect(try await store.lines(matching: query, limit: 9).map(\.state) == [.replaced, .replaced, .replaced])
            #expect(try await store.lines(matching: query, limit: 2).count == 2)
        }
        let stored = try await store.lines(matching: .notification(written[0].id), limit: 9).map(\.state)
        #expect(stored.contains(.storedPower) && stored.contains(.replaced))
        await store.close()
    }

    @Test func `what was carried over is in the file, and not in the log that the first commits would copy`()
        async throws
    {
        let store = try SQLiteFixture.open(folder)
        #expect(try #require(try folder.size(of: "store.sqlite-wal")) < 64 * 1024)
        #expect(store.count == 200)
        await store.close()
    }

    @Test func `everything in a store of the second format is there afterwards`() async throws {
        try await check(folder)
    }

    @Test func `rows of the former journal go when their time or their room is over`() async throws {
        let store = try SQLiteFixture.open(folder)
        func lines() async throws -> Int {
            try await store.lines(matching: .device(DeviceNumber(.max)), limit: 9).count
        }
        let event = JournalEvent(.received, written[0], at: WallTime(milliseconds: 0))
        store.record([event])
        #expect(try await lines() == 3)
        let positions = try await store.change { database, _ in
            try Int64.fetchAll(database, sql: "SELECT position FROM journal ORDER BY position")
        }
        #expect(positions == [0, 88, 296])
        // The second row, and the new one.
        try await store.trim(before: WallTime(milliseconds: -9), maximumBytes: 300)
        #expect(try await lines() == 2)
        try await store.trim(before: WallTime(milliseconds: -4), maximumBytes: .max)
        #expect(try await lines() == 0)
        #expect(try await store.lines(matching: .notification(written[0].id), limit: 9) == [event])
        await store.close()
    }

    @Test func `a store whose clean end was lost is carried over as well`() async throws {
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try await queue.write { try $0.execute(sql: "UPDATE setting SET value = 0 WHERE name = 'is_clean'") }
        try queue.close()
        try await check(folder)
    }

    /// One after the other: each opens some hundred stores, and other tests want the processor too.
    @Test(
        .serialized,
        arguments: [
            (FaultyDisk.Kind.writes, ResultCode.SQLITE_IOERR_WRITE), (.writes, .SQLITE_FULL),
            (.syncs, .SQLITE_IOERR_FSYNC),
        ]
    )
    func `carrying over that is interrupted at any call begins again`(
        fault: (kind: FaultyDisk.Kind, code: ResultCode)
    ) async throws {
        let interruptions = try await FaultyDisk.interruptOpenings(fault, in: folder.copy, check)
        #expect(interruptions > (fault.kind == .writes ? 100 : 0))
    }

    @Test(arguments: [FaultyDisk.Loss.everything, .some(seed: 1), .some(seed: 2)])
    func `power that goes right after the opening loses nothing`(loss: FaultyDisk.Loss) async throws {
        let disk = FaultyDisk(folder: folder.path)
        try disk.beginRecording()
        let store = try SQLiteFixture.open(folder)
        let left = try disk.cut(losing: loss)
        await store.close()
        disk.remove()
        try await check(left)
    }

    @Test func `a damaged notification stays damaged, and the others are there`() async throws {
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try await queue.write { try $0.execute(sql: "UPDATE mailbox SET received = 0 WHERE sequence = 150") }
        try queue.close()
        let store = try SQLiteFixture.open(folder)
        let found = try await store.waiting(in: written.map(\.slot))
        #expect(found.map(\.sequence) == Array(101...149) + Array(151...300))
        await store.close()
    }

    @Test func `a notification that is damaged into another's slot takes nothing from it`() async throws {
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try await queue.write { try $0.execute(sql: "UPDATE mailbox SET device = 47 WHERE sequence = 150") }
        try queue.close()
        #expect(written[49].slot.app == written[46].slot.app)
        for _ in 1...2 {
            let store = try SQLiteFixture.open(folder)
            let found = try await store.waiting(in: written.map(\.slot))
            #expect(found.map(\.sequence) == Array(101...149) + Array(151...300))
            #expect(found[46].notification.id == written[46].id)
            await store.close()
        }
    }

    @Test func `a backup that is being made does not keep the store from being carried over`() async throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let backup = try DatabaseQueue(path: folder.path + "/store.sqlite", configuration: configuration)
        try backup.inDatabase { database in
            try database.execute(sql: "BEGIN")
            #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM mailbox") == 200)
        }
        let store = try SQLiteFixture.open(folder)
        #expect(store.count == 200)
        await store.close()
        try backup.inDatabase { database in
            #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM mailbox") == 200)
            try database.execute(sql: "COMMIT")
        }
        try backup.close()
        try await check(folder)
    }

    @Test(arguments: [("registration", 25_000), ("registration", 0), ("mailbox", 0)])
    func `a store whose clean end was lost is checked before anything is carried over`(
        damage: (table: String, fullCheckPages: Int)
    ) async throws {
        let path = folder.path + "/store.sqlite"
        let queue = try DatabaseQueue(path: path)
        let root = try await queue.write { database in
            try database.execute(sql: "UPDATE setting SET value = 0 WHERE name = 'is_clean'")
            return try Int.fetchOne(
                database,
                sql: "SELECT rootpage FROM sqlite_master WHERE name = ?",
                arguments: [damage.table]
            )
        }
        try queue.close()
        var bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        let start = (try #require(root) - 1) * 4096
        // Bytes that no cell has any more, which reading does not notice.
        bytes[start + 7] = 20
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        var configuration = SQLiteFixture.configuration
        configuration.fullCheckPages = damage.fullCheckPages
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(folder, configuration) }
        #expect(error.code == .damaged)
        #expect(FileManager.default.contents(atPath: path) == Data(bytes))
    }

    @Test(arguments: ["id = x'00'", "app = -1"])
    func `a row that cannot have been written is refused, and the store stays as it was`(change: String) async throws {
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try await queue.write { try $0.execute(sql: "UPDATE mailbox SET \(change) WHERE sequence = 150") }
        try queue.close()
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
        #expect(error.code == .damaged)
        let again = try DatabaseQueue(path: folder.path + "/store.sqlite")
        #expect(try await again.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM mailbox") } == 200)
        try again.close()
    }

    /// In the file's bytes, gives the row of a notification another sequence of two bytes, as a damaged page may.
    private func damage(sequence: UInt64, to new: UInt64, ofID number: UInt64) throws {
        let path = folder.path + "/store.sqlite"
        var bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        let id = withUnsafeBytes(of: (UInt64(0xA).bigEndian, number.bigEndian)) { Array($0) }
        let places = bytes.indices.dropLast(id.count).filter { bytes[$0] == 0 && bytes[$0..<$0 + 16].elementsEqual(id) }
        #expect(places.count == 1)
        let start = try #require(places.first)
        func stored(_ sequence: UInt64) -> [UInt8] { [UInt8(sequence >> 7) | 0x80, UInt8(sequence & 0x7F)] }
        // Before the row's own bytes comes its header of a byte or two for each column, and before that the sequence.
        let place = try #require((start - 40..<start).last { bytes[$0..<$0 + 2].elementsEqual(stored(sequence)) })
        bytes.replaceSubrange(place..<place + 2, with: stored(new))
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            // The last of a thousand that are carried over together: what comes after it would go with it.
            (1100, 16_000),
            // The last of all, and one between: out of order.
            (1300, 1105), (1200, 130), (500, 16_000),
        ] as [(UInt64, UInt64)]
    )
    func `rows that are not in order are refused, and the store stays as it was`(
        change: (sequence: UInt64, new: UInt64)
    ) async throws {
        let queue = try DatabaseQueue(path: folder.path + "/store.sqlite")
        try await queue.write { database in
            for number in 201...1200 as ClosedRange<UInt64> {
                let one = HeraldModel.Notification(
                    id: NotificationID(high: 0xA, low: number),
                    uniqueID: NotificationID(high: 0xB, low: number),
                    slot: StoreScene.slot(number),
                    received: WallTime(milliseconds: 1),
                    storedUntil: nil,
                    priority: .immediate,
                    pushType: .alert,
                    collapseID: nil,
                    payload: [0x7B, 0x7D]
                )
                try FormerStoreTests.insert(one, number + 100, database)
            }
        }
        try queue.close()
        try damage(sequence: change.sequence, to: change.new, ofID: change.sequence - 100)
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
        #expect(error.code == .damaged)
        let again = try DatabaseQueue(path: folder.path + "/store.sqlite")
        #expect(try await again.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM mailbox") } == 1200)
        try again.close()
    }
}
