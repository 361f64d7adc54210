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

/// A folder that is there as long as somebody needs it.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "herald-store-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A copy as it is now: what a process leaves that is killed at this moment.
    func copy() throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            try FileManager.default.copyItem(atPath: path + "/" + name, toPath: copy.path + "/" + name)
        }
        return copy
    }
}

/// A store in a folder of its own, on a disk that can fail.
final class SQLiteFixture: StoreFixture {
    let folder: TemporaryFolder
    let disk: FaultyDisk
    let clock: any WallClock
    let configuration: SQLiteStoreConfiguration
    private let current: Mutex<SQLiteStore>

    /// Limits for tests: the disk is tried again soon.
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
        current = Mutex(try SQLiteFixture.open(self.folder, configuration, clock, fatal))
    }

    /// What the store said when it failed for good.
    let notes: FatalNotes

    final class FatalNotes: Sendable {
        private let errors = Mutex<[StoreError]>([])
        var all: [StoreError] { errors.withLock { $0 } }
        func add(_ error: StoreError) { errors.withLock { $0.append(error) } }
    }

    static func open(
        _ folder: TemporaryFolder,
        _ configuration: SQLiteStoreConfiguration = SQLiteFixture.configuration,
        _ clock: any WallClock = ManualClock(),
        _ notes: FatalNotes = FatalNotes()
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
        let reopened = try SQLiteFixture.open(folder, configuration, clock, notes)
        current.withLock { $0 = reopened }
    }

    /// Orders while the writer is busy with a job, so that all of it is in one commit; returns when that is durable.
    func together(_ order: () -> Void) async throws {
        let store = sqlite
        let gate = Gate()
        let (began, beganContinuation) = AsyncStream.makeStream(of: Void.self)
        async let busy: Void = store.change { _, _ in
            beganContinuation.yield()
            gate.wait()
        }
        for await _ in began { break }
        order()
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

/// What a store says.
final class LogNotes: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    var logger: Logger { Logger(label: "test") { _ in Handler(notes: self) } }

    private struct Handler: LogHandler {
        let notes: LogNotes
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let metadata = (event.metadata ?? [:]).map { " \($0)=\($1)" }.sorted().joined()
            notes.lines.withLock { $0.append("\(event.message)\(metadata)") }
        }
    }
}

extension TemporaryFolder {
    func size(of name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.size] as? Int
    }
}

/// Holds a thread back until a test lets it go.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() { semaphore.wait() }
    func open() { semaphore.signal() }
}

extension FaultyDisk {
    /// Opens and closes stores, each in a folder of its own, and has each call fail in turn until none is left that could;
    /// then the disk is well, and `check` looks at what is there.
    /// - Returns: How many could not be opened.
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
