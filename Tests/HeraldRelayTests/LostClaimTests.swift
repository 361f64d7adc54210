import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldRelay

/// Claims that the database commits, and whose answer does not arrive.
@Suite(.timeLimit(.minutes(10))) struct LostClaimTests {
    /// A database that loses the answer of one claim.
    private final class AnswerLoser: SQLDatabase {
        private let database: any SQLDatabase
        private let claimsBefore: Mutex<Int>

        var dialect: SQLDialect { database.dialect }
        var tables: TableNames { database.tables }

        /// The answers of as many claims with rows arrive before.
        init(_ database: any SQLDatabase, after claims: Int) {
            self.database = database
            claimsBefore = Mutex(claims)
        }

        func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value
        {
            let value = try await database.write(body)
            if let update = value as? QueueUpdate, !update.claimed.isEmpty {
                let left = claimsBefore.withLock { left in
                    defer { left -= 1 }
                    return left
                }
                if left == 0 { throw RelayStoreError(.unavailable, "the connection is lost") }
            }
            return value
        }

        func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
            try await database.read(body)
        }

        func warnings() async throws -> [String] { try await database.warnings() }
        func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> { database.changes(note: note) }
        func close() async { await database.close() }
    }

    /// A clock that moves on each time it is read, so that no test waits for a pause.
    private final class ReadClock: WallClock {
        private let time = Mutex(Words.now)

        func now() -> WallTime {
            time.withLock { time in
                time = time + .milliseconds(50)
                return time
            }
        }
    }

    /// Accepts every notification, the first not before the second has come if that is asked for.
    private final class Acceptor: RelaySender {
        private let tokens = Mutex<[String]>([])
        private let holdsFirst: Bool
        private let (seconds, second) = AsyncStream.makeStream(of: Void.self)

        var sent: [String] { tokens.withLock { $0 } }

        init(holdsFirst: Bool = false) {
            self.holdsFirst = holdsFirst
        }

        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
            for (place, request) in requests.enumerated() {
                let count = tokens.withLock { tokens in
                    tokens.append(request.token.hex)
                    return tokens.count
                }
                if count == 2 { second.finish() }
                if holdsFirst, count == 1 { for await _ in seconds {} }
                let answer = try? PushAnswer(status: 200, field: { $0 == "apns-id" ? "x" : nil }, body: [])
                report(place, answer.map { .answered($0) } ?? .uncertain(RowError(.unreachable)))
            }
        }

        func shutdown() async {}
    }

    /// Runs a relay that loses the answer of a claim, until it has sent two notifications.
    private func send(_ store: RelayStore, losing claim: Int, batch: Int = 10, through sender: Acceptor) async throws {
        var configuration = RelayConfiguration()
        // Rows in doubt would end without being sent.
        configuration.inDoubt = .giveUp
        configuration.lease = .seconds(86_400)
        configuration.batch = batch
        let routes = RouteList { app in
            Route(app, sender: sender, journal: nil, backOff: RetryBackOff())
        }
        let relay = Relay(
            configuration: configuration,
            routes: routes,
            store: RelayStore(AnswerLoser(store.database, after: claim)),
            owner: "one",
            clock: ReadClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try relay.replace([
            RelayApp(
                name: "apple",
                topics: [],
                environment: .production,
                service: HostPort(host: "localhost", port: 1),
                credential: .certificate(pem: [])
            )
        ])
        await QueuePump(relay.context, relay.rows).run { sender.sent.count >= 2 }
    }

    @Test(arguments: Engine.all)
    func `rows of a lost claim are claimed again, without doubt`(_ engine: Engine) async throws {
        try await engine.with { store in
            let ids = [try await store.queue(), try await store.queue(Words.other)]
            let sender = Acceptor()
            try await send(store, losing: 0, through: sender)
            #expect(Set(sender.sent) == [Words.token, Words.other] && sender.sent.count == 2)
            for id in ids { #expect(try await store.column("status", of: id).text == "sent") }
        }
    }

    @Test(arguments: Engine.all) func `a row in flight stays claimed while another's claim is lost`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let ids = [try await store.queue(), try await store.queue(Words.other)]
            let sender = Acceptor(holdsFirst: true)
            try await send(store, losing: 1, batch: 1, through: sender)
            #expect(sender.sent == [Words.token, Words.other])
            for id in ids { #expect(try await store.column("status", of: id).text == "sent") }
        }
    }

    @Test func `a sent row whose outcome cannot be written stays in doubt`() async throws {
        try await Engine.all[0].with { store in
            let id = try await store.queue()
            let other = try await store.queue(Words.other)
            try await store.run(
                """
                CREATE TRIGGER keep BEFORE UPDATE OF status ON push_queue WHEN OLD.id = \(id)
                BEGIN SELECT RAISE(ABORT, 'kept'); END
                """
            )
            let sender = Acceptor()
            try await send(store, losing: 1, batch: 1, through: sender)
            #expect(sender.sent == [Words.token, Words.other])
            #expect(try await store.column("owner", of: id).text == "one")
            #expect(try await store.column("status", of: other).text == "sent")
            let later = try await store.claim(by: "two", at: Words.now + .seconds(2 * 86_400))
            #expect(later.map(\.id) == [id] && later.first?.isUncertain == true)
        }
    }

    @Test(arguments: Engine.all) func `a release frees the owner's other rows, and keeps older doubts`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let doubtful = try await store.queue()
            _ = try await store.claim(by: "gone")
            let fresh = try await store.queue()
            let inFlight = try await store.queue()
            let later = Words.now + .seconds(61)
            #expect(try await store.claim(at: later).count == 3)
            let foreign = try await store.queue()
            #expect(try await store.claim(by: "two", at: later).map(\.id) == [foreign])
            #expect(try await store.release(except: [inFlight], owner: "one") == 2)
            let rows = try await store.claim(by: "three", at: later)
            #expect(Set(rows.map(\.id)) == [doubtful, fresh])
            #expect(rows.allSatisfy { $0.isUncertain == ($0.id == doubtful) })
            #expect(try await store.release(except: [], owner: "one") == 1)
        }
    }
}
