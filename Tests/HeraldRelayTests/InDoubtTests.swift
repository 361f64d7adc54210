import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldRelay

/// Rows that may have been sent, where no journal knows: `in-doubt`.
@Suite struct InDoubtTests {
    /// Loses each answer, and counts the notifications.
    private final class Loser: RelaySender {
        private let requests = Mutex<[PushRequest]>([])

        var sent: [PushRequest] { requests.withLock { $0 } }

        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
            self.requests.withLock { $0 += requests }
            for place in requests.indices { report(place, .uncertain(RowError(.unreachable))) }
        }

        func shutdown() async {}
    }

    private struct Journal: JournalLookup {
        let answer: JournalResult

        func result(of id: NotificationID, since start: WallTime) async -> JournalResult { answer }
    }

    /// Processes a row.
    /// - Returns: The change of the row, and the notifications that were sent.
    private func process(
        _ choice: InDoubtChoice,
        _ columns: [QueueColumn: SQLValue] = [:],
        uncertain: Bool = true,
        lookups: Int = 0,
        journal: JournalResult? = nil
    ) async throws -> (change: RowOutcome.Change, sent: [PushRequest]) {
        let sender = Loser()
        var change: RowOutcome.Change?
        try await Engine.all[0].withBare { store, _ in
            var configuration = RelayConfiguration()
            configuration.inDoubt = choice
            let routes = RouteList { app in
                Route(app, sender: sender, journal: journal.map { Journal(answer: $0) }, backOff: RetryBackOff())
            }
            let relay = Relay(
                configuration: configuration,
                routes: routes,
                store: store,
                owner: "one",
                clock: ManualClock(Words.now),
                logger: Logger(label: "test")
            )
            let endpoint = HostPort(host: "localhost", port: 1)
            try relay.replace([
                RelayApp(
                    name: "apple",
                    topics: [],
                    environment: .production,
                    service: endpoint,
                    credential: .certificate(pem: [])
                )
            ])
            try await store.prepare()
            let changes = Mutex<[RowOutcome.Change?]>([])
            await relay.rows.process([Self.row(columns, uncertain, lookups)]) { _, outcome in
                changes.withLock { $0.append(outcome?.change) }
            }
            change = changes.withLock { $0.first ?? nil }
        }
        return (try #require(change), sender.sent)
    }

    private static func row(_ columns: [QueueColumn: SQLValue], _ isUncertain: Bool, _ lookups: Int) -> QueueRow {
        var values: [QueueColumn: SQLValue] = [
            .deviceToken: .text(Words.token), .topic: .text("com.example.chat"), .payload: .text(Words.payload),
            .timeQueued: StoredMoment.text(Words.now),
        ]
        values.merge(columns) { $1 }
        return QueueRow(
            id: 1,
            apnsID: "8f6b1c2e-6a3d-4b1f-9a57-0c7d2e4f5a6b",
            isUncertain: isUncertain,
            lookups: lookups,
            attempts: 0,
            parent: nil,
            device: nil,
            values: QueueColumn.allCases.map { values[$0] ?? .null }[...]
        )
    }

    private static let gaveUp = RowOutcome.Change.final(.failed, reason: "Uncertain")

    @Test func `repeat sends again under the same identifier`() async throws {
        #expect(RelayConfiguration().inDoubt == .repeat)
        let (change, sent) = try await process(.repeat)
        #expect(sent.map(\.id) == [NotificationID("8f6b1c2e-6a3d-4b1f-9a57-0c7d2e4f5a6b")])
        guard case .later(_, _, uncertain: true, _) = change else {
            Issue.record("the doubt is forgotten: \(change)")
            return
        }
    }

    @Test func `give-up sends nothing again, whatever the row has`() async throws {
        for columns in [[:], [.collapseID: .text("dinner")]] as [[QueueColumn: SQLValue]] {
            let (change, sent) = try await process(.giveUp, columns)
            #expect(change == Self.gaveUp && sent.isEmpty)
        }
    }

    @Test func `repeat-collapsed sends again only what the device collapses`() async throws {
        let collapse = SQLValue.text("dinner")
        #expect(try await process(.repeatCollapsed, [.collapseID: collapse]).sent.count == 1)
        let others: [[QueueColumn: SQLValue]] = [
            [:],
            [.collapseID: collapse, .pushType: .text("voip")],
            [.collapseID: collapse, .payload: .text(#"{"aps":{"content-available":1}}"#)],
        ]
        for columns in others {
            let (change, sent) = try await process(.repeatCollapsed, columns)
            #expect(change == Self.gaveUp && sent.isEmpty)
        }
    }

    @Test(arguments: InDoubtChoice.allCases)
    func `a row that was never sent is sent, and its doubt is recorded`(_ choice: InDoubtChoice) async throws {
        let (change, sent) = try await process(choice, uncertain: false)
        #expect(sent.count == 1)
        guard case .later(_, _, uncertain: true, _) = change else {
            Issue.record("the doubt is forgotten: \(change)")
            return
        }
    }

    @Test func `the journal comes before the choice`() async throws {
        let accepted = try await process(.giveUp, journal: .accepted)
        #expect(accepted.change == .final(.sent, reason: nil) && accepted.sent.isEmpty)
        #expect(try await process(.giveUp, journal: .notAccepted).sent.count == 1)
        // It says "received" and nothing more for minutes: the choice decides.
        #expect(try await process(.giveUp, lookups: 8, journal: .pending).change == Self.gaveUp)
        #expect(try await process(.repeat, lookups: 8, journal: .pending).sent.count == 1)
        // It has deleted lines of that time: at once.
        #expect(try await process(.giveUp, journal: .forgotten).change == Self.gaveUp)
        #expect(try await process(.repeat, journal: .forgotten).sent.count == 1)
    }

    @Test func `a row in doubt that waits for a new time stays in doubt`() async throws {
        let (change, sent) = try await process(.giveUp, [.sendAfter: .int(Words.now.seconds + 60)])
        guard case .later(let moment, _, uncertain: true, _) = change else {
            Issue.record("the doubt is forgotten: \(change)")
            return
        }
        #expect(moment.seconds == Words.now.seconds + 60 && sent.isEmpty)
    }
}
