import Foundation
import GRDB
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldProvider
@testable import HeraldRelay

/// A queue to be tested: the relay's store, and a way past it, as another program has one.
struct Engine: Sendable, CustomTestStringConvertible {
    let name: String
    /// Does something with the address of a new database, which is gone afterwards, or with the tests' server.
    private let lend: @Sendable (_ body: (DatabaseAddress) async throws -> Void) async throws -> Void

    var testDescription: String { name }

    static let all: [Engine] = [
        Engine(name: "SQLite") { body in
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("relay-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            try await body(.sqlite(path: folder.appendingPathComponent("queue.db").path))
        },
        Engine(name: "PostgreSQL") { body in
            try await body(.postgresql(try PostgresServer.shared.database()))
        },
        Engine(name: "PgBouncer") { body in
            try await body(.postgresql(PostgresServer.pooled(try PostgresServer.shared.database())))
        },
    ]

    /// Does something with a queue whose tables are not made yet, and its address.
    func withBare(
        _ tables: TableNames = TableNames(),
        _ body: (RelayStore, DatabaseAddress) async throws -> Void
    ) async throws {
        try await lend { address in
            let store = try RelayStore.patient(address, tables: tables)
            do {
                try await body(store, address)
            } catch {
                await store.close()
                throw error
            }
            await store.close()
        }
    }

    /// Does something with an empty queue.
    func with(_ body: (RelayStore) async throws -> Void) async throws {
        try await withBare { store, _ in
            try await store.prepare()
            try await body(store)
        }
    }
}

/// The server that the tests of this process share; it ends with the process, whose pipe it reads.
final class PostgresServer: Sendable {
    static let shared = PostgresServer()
    private let state = Mutex<(address: String, pipe: Pipe, count: Int)?>(nil)

    /// The address of a new database on it.
    func database() throws -> String {
        try state.withLock { state in
            if state == nil { state = try PostgresServer.start() }
            guard var started = state else { throw CancellationError() }
            started.count += 1
            state = started
            let connection = try PostgresConnection(started.address)
            try connection.command("CREATE DATABASE relay\(started.count)")
            return started.address.replacing("/herald?", with: "/relay\(started.count)?")
        }
    }

    /// The same database through PgBouncer in transaction mode.
    static func pooled(_ address: String) -> String { address.replacing("port=5432", with: "port=6432") }

    private static func start() throws -> (String, Pipe, Int) {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("postgres-server")
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = script
        process.arguments = ["pooler"]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var line = ""
        while !line.hasSuffix("\n") {
            let bytes = output.fileHandleForReading.availableData
            guard !bytes.isEmpty else { throw RelayStoreError(.unusable, "the PostgreSQL of the tests does not start") }
            line += String(decoding: bytes, as: UTF8.self)
        }
        let address = line.trimmingCharacters(in: .newlines)
        return (address.replacing("/herald?", with: "/herald?connect_timeout=240&"), input, 0)
    }
}

extension PostgresLimits {
    /// Limits that a busy machine does not pass.
    static var patient: PostgresLimits {
        PostgresLimits(lock: .patience, statement: .patience, answer: .patience * 2, begin: .patience)
    }
}

extension RelayStore {
    /// Opens a database whose server may be slow.
    static func patient(_ place: DatabaseAddress, tables: TableNames = TableNames()) throws -> RelayStore {
        guard case .postgresql(let address) = place else { return try RelayStore.open(place, tables: tables) }
        return RelayStore(PostgresDatabase(address: address, tables: tables, limits: .patient))
    }
}

extension RelayStore {
    /// Writes past the contract, as another program does.
    @discardableResult
    func run(_ sql: String, _ arguments: SQLValue...) async throws -> [[SQLValue]] {
        try await database.write { try $0.runOnce(sql, arguments).rows.map(\.values) }
    }

    /// Queues a row of three columns.
    @discardableResult
    func queue(_ token: String = Words.token, topic: String = "com.example.chat") async throws -> Int64 {
        let rows = try await run(
            "INSERT INTO push_queue (device_token, topic, payload) VALUES (?1, ?2, ?3) RETURNING id",
            .text(token),
            .text(topic),
            .text(Words.payload)
        )
        return try #require(rows.first?[0].int)
    }

    func column(_ name: String, of row: Int64) async throws -> SQLValue {
        let rows = try await run("SELECT \(name) FROM push_queue WHERE id = ?1", .int(row))
        return try #require(rows.first)[0]
    }

    func claim(_ limit: Int = 10, by owner: String = "one", at now: WallTime = Words.now) async throws -> [QueueRow] {
        try await claim(ClaimRequest(limit: limit, owner: owner, now: now, leaseEnd: now + .seconds(60)))
    }

    func finish(_ row: QueueRow, _ change: RowOutcome.Change, by owner: String = "one") async throws -> [FinishedRow] {
        try await finish([RowOutcome(of: row, change, at: Words.now)], owner: owner)
    }
}

enum Words {
    static let token = String(repeating: "ab", count: 32)
    static let other = String(repeating: "cd", count: 32)
    static let payload = #"{"aps":{"alert":"hello"}}"#
    /// Far from the true time of the databases' defaults on neither side.
    static let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
}

extension RelayStore {
    /// Claims due rows, oldest first.
    func claim(_ request: ClaimRequest) async throws -> [QueueRow] {
        try await finish([], owner: request.owner, claiming: request).claimed
    }

    /// Writes outcomes.
    /// - Returns: The rows that are final now.
    func finish(_ outcomes: [RowOutcome], owner: String) async throws -> [FinishedRow] {
        try await finish(outcomes, owner: owner, claiming: nil).finished
    }
}

extension Relay {
    /// A relay with the owner `one`.
    static func one(
        _ store: RelayStore,
        _ routes: RouteList = RouteList { _ in throw CancellationError() },
        notes: LogNotes = LogNotes(),
        clock: any WallClock = ManualClock(Words.now)
    ) -> Relay {
        Relay(
            configuration: RelayConfiguration(),
            routes: routes,
            store: store,
            owner: "one",
            clock: clock,
            logger: notes.logger
        )
    }
}

extension RelayApp {
    /// An app of a service that nobody has to reach.
    static func herald(_ topics: [String] = [], pem: [UInt8] = []) -> RelayApp {
        RelayApp(
            name: "herald",
            topics: topics,
            environment: .production,
            service: HostPort(host: "localhost", port: 1),
            credential: .certificate(pem: pem)
        )
    }
}
