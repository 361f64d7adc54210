import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldStores

struct OpeningTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/store.sqlite" }

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The error of opening the store: one line that names the file, which stays unchanged.
    private func failure() throws -> StoreError {
        let before = FileManager.default.contents(atPath: path)
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
        #expect(!error.message.contains("\n"))
        #expect(error.message.contains(path))
        #expect(FileManager.default.contents(atPath: path) == before)
        return error
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    private func makeDatabase(_ sql: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    // MARK: - Settings

    @Test(arguments: [
        ("journal_mode", "wal"), ("synchronous", "2"), ("wal_autocheckpoint", "0"), ("mmap_size", "0"),
        ("application_id", "1213353043"), ("user_version", "1"), ("page_size", "4096"),
    ])
    func `the writer has the settings that durability needs`(
        setting: (name: String, value: String)
    ) async throws {
        let store = try SQLiteFixture.open(folder)
        let found = try await store.change { database, _ in
            try String.fetchOne(database, sql: "PRAGMA \(setting.name)")
        }
        #expect(found == setting.value)
        await store.close()
    }

    @Test(arguments: [("wal_autocheckpoint", "0"), ("mmap_size", "0"), ("query_only", "1")])
    func `a reader cannot write, and has no automatic checkpoints`(setting: (name: String, value: String)) async throws
    {
        let store = try SQLiteFixture.open(folder)
        let found = try await store.readers.read { try String.fetchOne($0, sql: "PRAGMA \(setting.name)") }
        #expect(found == setting.value)
        await store.close()
    }

    @Test(arguments: [
        "INSERT INTO setting VALUES ('x', 1)", "DELETE FROM segment", "PRAGMA user_version = 7", "CREATE TABLE t (x)",
        "PRAGMA query_only = 0; INSERT INTO setting VALUES ('x', 1)",
    ])
    func `readers cannot write`(sql: String) async throws {
        let store = try SQLiteFixture.open(folder)
        await #expect(throws: StoreError.self) {
            try await store.readers.read { try $0.execute(sql: sql) }
        }
        await store.close()
    }

    @Test func `a reader's checkpoint copies nothing`() async throws {
        var configuration = SQLiteFixture.configuration
        // The writer's own checkpoint comes after the end of the test.
        configuration.checkpointIdle = .seconds(3600)
        let fixture = try SQLiteFixture(configuration: configuration, in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        await scene.put(1, to: StoreScene.slot(1))
        let before = FileManager.default.contents(atPath: path)
        // SQLite tries and fails, because the reader has opened the file for reading only.
        await #expect(throws: StoreError.self) {
            try await fixture.sqlite.readers.read { _ = try $0.checkpoint(.passive) }
        }
        #expect(FileManager.default.contents(atPath: path) == before)
        await fixture.close()
    }

    @Test func `only the owner may read the files`() async throws {
        let store = try SQLiteFixture.open(folder)
        for name in ["store.sqlite", "store.sqlite-wal"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        await store.close()
    }

    @Test func `a closed store leaves one file, and opens again`() async throws {
        await (try SQLiteFixture.open(folder)).close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["store.sqlite"])
        await (try SQLiteFixture.open(folder)).close()
    }

    @Test func `a closed store answers after the call, whose caller may hold a lock`() async throws {
        let store = try SQLiteFixture.open(folder)
        await store.close()
        let lock = Mutex(0)
        await withCheckedContinuation { continuation in
            lock.withLock { _ in
                store.read([RegisteredSlot(StoreScene.slot(1), generation: 0)]) { _ in
                    lock.withLock { $0 += 1 }
                    continuation.resume()
                }
            }
        }
        await withCheckedContinuation { continuation in
            lock.withLock { _ in
                store.setSession(nil, for: DeviceNumber(1), fence: 1) { _ in
                    lock.withLock { $0 += 1 }
                    continuation.resume()
                }
            }
        }
        #expect(lock.withLock { $0 } == 2)
    }

    @Test func `an empty file becomes a store`() async throws {
        try write([])
        await (try SQLiteFixture.open(folder)).close()
    }

    // MARK: - Refused files

    @Test(arguments: [
        Array("hello".utf8), [UInt8](repeating: 0, count: 4096), Array("SQLite format 3\0".utf8),
        Array("SQLite format 2\0".utf8) + [UInt8](repeating: 7, count: 5000),
    ])
    func `a file that is not a database is left alone`(bytes: [UInt8]) throws {
        try write(bytes)
        #expect(try failure().code == .foreignFile)
    }

    @Test(arguments: ["", "PRAGMA application_id = 5;", "PRAGMA journal_mode = WAL;", "PRAGMA user_version = 1;"])
    func `a database of another program is left alone`(sql: String) throws {
        try makeDatabase(sql + "CREATE TABLE recipes (name TEXT)")
        let error = try failure()
        #expect(error.code == .foreignFile && error.message.contains("restore the store from a backup"))
    }

    @Test func `a store of a newer version is left alone`() async throws {
        await (try SQLiteFixture.open(folder)).close()
        try makeDatabase("PRAGMA user_version = \(Schema.current.format + 1)")
        let error = try failure()
        #expect(error.code == .newerVersion)
        #expect(error.message.contains("newer"))
    }

    // MARK: - Migration

    private func opener(_ migrations: [Schema.Migration]) -> DatabaseOpener {
        DatabaseOpener(
            file: DatabaseFile(path: path),
            configuration: SQLiteFixture.configuration,
            logger: .silent,
            schema: Schema(migrations: migrations)
        )
    }

    @Test func `an older store is migrated in one transaction, and this version then refuses it as newer`() async throws
    {
        let store = try SQLiteFixture.open(folder)
        let device = try #require(DeviceID("phone"))
        let number = try await store.number(of: device)
        await store.close()
        let first: Schema.Migration = {
            try $0.execute(sql: "ALTER TABLE device ADD COLUMN color TEXT NOT NULL DEFAULT 'red'")
        }
        let failing: Schema.Migration = { try $0.execute(sql: "INSERT INTO missing VALUES (1)") }
        #expect(throws: StoreError.self) { try opener([first, failing]).writer() }
        // The failed migration has changed nothing.
        await (try SQLiteFixture.open(folder)).close()
        let second: Schema.Migration = { try $0.execute(sql: "UPDATE device SET color = color || ' phone'") }
        let queue = try opener([first, second]).writer()
        let (format, color) = try await queue.read { database in
            (
                try Schema.format(of: database),
                try String.fetchOne(
                    database,
                    sql: "SELECT color FROM device WHERE number = ?",
                    arguments: [Int64(bitPattern: number.value)]
                )
            )
        }
        #expect(format == 3 && color == "red phone")
        try queue.close()
        #expect(try failure().code == .newerVersion)
    }

    @Test func `a folder in the file's place is refused`() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
    }

    @Test func `a folder that is not there is refused`() throws {
        let error = try #require(throws: StoreError.self) {
            _ = try SQLiteStore(
                path: folder.path + "/missing/store.sqlite",
                clock: ManualClock(),
                logger: .silent,
                onFatal: { _ in }
            )
        }
        #expect(error.code == .notWritable)
    }

    @Test(arguments: [("store.sqlite", 0o400), ("", 0o500), ("store.sqlite", 0), ("", 0)])
    func `a file or a folder that its owner may not use is refused`(
        place: (name: String, mode: mode_t)
    ) async throws {
        await (try SQLiteFixture.open(folder)).close()
        let folder = folder
        let error = try await OrdinaryUser.run(owning: [folder.path, path]) {
            chmod(folder.path + "/" + place.name, place.mode)
            defer { chmod(folder.path, 0o700) }
            return #expect(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
        }
        #expect([.notWritable, .cannotOpen].contains(error?.code))
        #expect(error?.message.contains("\n") == false)
        #expect(error?.message.contains(path) == true)
        chmod(path, 0o600)
        await (try SQLiteFixture.open(folder)).close()
    }

    @Test func `an ordinary user's own store is opened`() async throws {
        await (try SQLiteFixture.open(folder)).close()
        let folder = folder
        let store = try await OrdinaryUser.run(owning: [folder.path, path]) { try SQLiteFixture.open(folder) }
        await store.close()
    }

    @Test func `a store that another connection holds is refused`() async throws {
        await (try SQLiteFixture.open(folder)).close()
        let other = try DatabaseQueue(path: path)
        try await other.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT")
        }
        let error = try #require(throws: StoreError.self) { _ = try SQLiteFixture.open(folder) }
        #expect(error.code == .cannotOpen)
        #expect(error.message.contains("another process"))
        try other.close()
    }

    @Test(arguments: [
        (FaultyDisk.Kind.writes, ResultCode.SQLITE_IOERR_WRITE), (.writes, .SQLITE_FULL), (.syncs, .SQLITE_IOERR_FSYNC),
    ])
    func `a store whose creation was interrupted at any call is created again`(
        fault: (kind: FaultyDisk.Kind, code: ResultCode)
    ) async throws {
        let interruptions = try await FaultyDisk.interruptOpenings(fault, in: TemporaryFolder.init) { folder in
            let store = try SQLiteFixture.open(folder)
            #expect(try await store.register(StoreScene.slot(1), at: WallTime(seconds: 1)).isLive)
            await store.close()
        }
        // Every call of creating and closing has failed once.
        #expect(interruptions > 5)
    }

    // MARK: - Damage

    @Test func `a store whose pages are overwritten is refused, and nothing is written to it`() async throws {
        let fixture = try SQLiteFixture(in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        for number in 1...200 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 200 }
        await fixture.close()
        var bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        for page in 1..<bytes.count / 4096 {
            bytes.replaceSubrange(page * 4096..<page * 4096 + 64, with: repeatElement(0xAA, count: 64))
        }
        try write(bytes)
        let error = try failure()
        #expect(error.code == .damaged)
        #expect(error.message.contains("restore"))
    }

    @Test func `half a file is refused`() async throws {
        let fixture = try SQLiteFixture(in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        for number in 1...200 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 200 }
        await fixture.close()
        let bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        try write(Array(bytes.prefix(bytes.count / 2)))
        #expect(try failure().code == .damaged)
    }

    @Test func `a notification of a missing segment is not delivered, and others are`() async throws {
        let fixture = try SQLiteFixture(in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        for number in 1...3 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "DELETE FROM segment WHERE number = 2")
        }
        #expect(try await scene.waiting(StoreScene.slot(1), StoreScene.slot(2), StoreScene.slot(3)) == [1, 3])
        await fixture.close()
    }

    @Test func `an unreadable session is ignored`() async throws {
        let store = try SQLiteFixture.open(folder)
        let device = try await store.number(of: try #require(DeviceID("phone")))
        try await store.change { database, _ in
            try database.execute(sql: "UPDATE device SET session = '{', is_saving_power = 1")
        }
        #expect(try await store.deviceRecord(device) == DeviceRecord(isSavingPower: true))
        await store.close()
    }

    @Test func `a damaged row of the journal is skipped`() async throws {
        let fixture = try SQLiteFixture(in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        for number in 1...3 as ClosedRange<UInt64> {
            scene.store.record([
                JournalEvent(.received, scene.notification(number, to: StoreScene.slot(1)), at: scene.now)
            ])
            _ = try await scene.lines(number)
        }
        try await fixture.sqlite.change { database, _ in
            try database.execute(
                sql: """
                    UPDATE journal SET events = zeroblob(72)
                    WHERE position = (SELECT position FROM journal ORDER BY position LIMIT 1 OFFSET 1)
                    """
            )
        }
        #expect(try await scene.store.lines(matching: .device(DeviceNumber(1)), limit: 9).map(\.id.low) == [1, 3])
        #expect(try await scene.states(2) == [])
        await fixture.close()
    }

    @Test func `with any byte of the file flipped, a notification is read whole or not at all`() async throws {
        let fixture = try SQLiteFixture(in: folder)
        let scene = StoreScene(fixture, clock: ManualClock())
        let slots = (1...40).map { StoreScene.slot($0) }
        for number in 1...40 as ClosedRange<UInt64> {
            scene.store.put(Envelope(scene.notification(number, to: StoreScene.slot(number))), reason: .power, tag: nil)
        }
        await scene.witness.wait { $0.stored.count == 40 }
        let put = scene.witness.heard.stored.map(\.envelope.notification)
        await fixture.close()
        let bytes = Array(try #require(FileManager.default.contents(atPath: path)))
        var refusals = 0
        for index in stride(from: 0, to: bytes.count, by: 211) {
            var damaged = bytes
            damaged[index] ^= 1 << UInt8(index % 8)
            try write(damaged)
            do {
                let store = try SQLiteFixture.open(folder)
                let found = try await store.waiting(in: slots).map(\.notification)
                for one in found {
                    let original = try #require(put.first { $0.uniqueID == one.uniqueID })
                    #expect(one.payload == original.payload)
                    #expect(one.slot == original.slot)
                }
                await store.close()
            } catch is StoreError {
                refusals += 1
            }
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        }
        #expect(refusals > 0)
    }
}
