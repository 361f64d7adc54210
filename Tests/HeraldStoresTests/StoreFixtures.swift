import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization

@testable import HeraldStores

extension StoreEngine {
    static let memory = StoreEngine(name: "memory", isDurable: false) { clock in
        MemoryFixture(store: MemoryStore(clock: clock))
    }

    static let sqlite = StoreEngine(name: "SQLite", isDurable: true) { clock in
        try SQLiteFixture(clock: clock)
    }
}

final class MemoryFixture: StoreFixture {
    let memory: MemoryStore
    var store: AnyStore { memory }

    init(store: MemoryStore) {
        memory = store
    }

    func restart() async throws {}
    func setFailsWrites(_ fails: Bool) { memory.setFailsWrites(fails) }
    func close() async {}
}

/// A temporary folder, deleted with this object.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "herald-store-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A copy of the present content, as after a kill.
    func copy() throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            try FileManager.default.copyItem(atPath: path + "/" + name, toPath: copy.path + "/" + name)
        }
        return copy
    }
}

/// A store in its own folder, on a faulty disk.
final class SQLiteFixture: StoreFixture {
    let folder: TemporaryFolder
    let disk: FaultyDisk
    let clock: any WallClock
    let configuration: SQLiteStoreConfiguration
    private let current: Mutex<SQLiteStore>

    /// Limits for tests, with short retries.
    static var configuration: SQLiteStoreConfiguration {
        var configuration = SQLiteStoreConfiguration()
        configuration.retryInterval = .milliseconds(2)
        configuration.cacheBytes = 1 << 20
        return configuration
    }

    init(
        clock: any WallClock = ManualClock(),
        configuration: SQLiteStoreConfiguration = SQLiteFixture.configuration,
        in folder: TemporaryFolder? = nil
    ) throws {
        self.clock = clock
        self.configuration = configuration
        self.folder = try folder ?? TemporaryFolder()
        disk = FaultyDisk(folder: self.folder.path)
        let fatal = FatalNotes()
        self.notes = fatal
        current = Mutex(try SQLiteFixture.open(self.folder, configuration, clock: clock, notes: fatal))
    }

    /// The fatal errors of the store.
    let notes: FatalNotes

    final class FatalNotes: Sendable {
        private let errors = Mutex<[StoreError]>([])
        var all: [StoreError] { errors.withLock { $0 } }
        func add(_ error: StoreError) { errors.withLock { $0.append(error) } }
    }

    static func open(
        _ folder: TemporaryFolder,
        _ configuration: SQLiteStoreConfiguration = SQLiteFixture.configuration,
        clock: any WallClock = ManualClock(),
        notes: FatalNotes = FatalNotes()
    ) throws -> SQLiteStore {
        try SQLiteStore(
            path: folder.path + "/store.sqlite",
            configuration: configuration,
            clock: clock,
            logger: .silent,
            onFatal: { notes.add($0) }
        )
    }

    var sqlite: SQLiteStore { current.withLock { $0 } }
    var store: AnyStore { sqlite }

    func restart() async throws {
        await sqlite.close()
        let reopened = try SQLiteFixture.open(folder, configuration, clock: clock, notes: notes)
        current.withLock { $0 = reopened }
    }

    /// Runs `requests` while the writer is busy, so that they share one commit; returns when it is durable.
    func together(_ requests: () -> Void) async throws {
        let store = sqlite
        let gate = Gate()
        let (began, beganContinuation) = AsyncStream.makeStream(of: Void.self)
        async let busy: Void = store.change { _, _ in
            beganContinuation.yield()
            gate.wait()
        }
        for await _ in began { break }
        requests()
        gate.open()
        try await busy
        try await store.change { _, _ in }
    }

    func setFailsWrites(_ fails: Bool) {
        if fails { disk.fail(.writes, with: SQLITE_FULL) } else { disk.heal() }
    }

    func close() async {
        await sqlite.close()
        disk.remove()
    }
}

extension Logger {
    static let silent = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
}

extension TemporaryFolder {
    func size(of name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.size] as? Int
    }
}

/// Blocks a thread until a test opens it.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }
    func open() { semaphore.signal() }
}

extension FaultyDisk {
    /// Opens and closes stores, each in its own folder, with each disk call failing in turn; then heals the disk and runs
    /// `check`.
    /// - Returns: The number of stores that could not be opened.
    static func interruptOpenings(
        _ fault: (kind: Kind, code: ResultCode),
        in makeFolder: () throws -> TemporaryFolder,
        _ check: (TemporaryFolder) async throws -> Void
    ) async throws -> Int {
        var interruptions = 0
        for count in 0... {
            let folder = try makeFolder()
            let disk = FaultyDisk(folder: folder.path)
            disk.fail(fault.kind, with: fault.code.rawValue, after: count)
            do {
                await (try SQLiteFixture.open(folder)).close()
            } catch is StoreError {
                interruptions += 1
            }
            let hasFailed = disk.calls.failures > 0
            disk.heal()
            try await check(folder)
            disk.remove()
            if !hasFailed { break }
        }
        return interruptions
    }
}
