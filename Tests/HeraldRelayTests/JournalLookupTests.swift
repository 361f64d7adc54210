import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldRelay

/// Outcome of a row that may have been sent, depending on the journal.
@Suite struct JournalLookupTests {
    private struct Fixed: JournalLookup {
        let answer: JournalResult

        func result(of id: NotificationID, since start: WallTime) async -> JournalResult { answer }
    }

    private struct Nobody: RelaySender {
        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
            for place in requests.indices { report(place, .notSent(RowError(.unreachable))) }
        }
        func shutdown() async {}
    }

    /// Asks for a row that was asked for so often, at so many seconds before its time is over.
    private func asked(
        _ answer: JournalResult,
        _ lookups: Int,
        left: Int = 3600,
        afterwards: (Relay) async throws -> Void = { _ in }
    ) async throws -> RowSender.LookupResult? {
        var result: RowSender.LookupResult?
        try await Engine.all[0].withBare { store, _ in
            let relay = try self.relay(on: store, answer)
            result = await relay.rows.lookUp(Self.row(lookups, left: left), RowReader(longestLife: .seconds(86_400)))
            try await afterwards(relay)
        }
        return result
    }

    private func relay(on store: RelayStore, _ answer: JournalResult) throws -> Relay {
        let routes = RouteList { app in
            Route(app, sender: Nobody(), journal: Fixed(answer: answer), backOff: RetryBackOff())
        }
        let relay = Relay.one(store, routes)
        try relay.replace([
            RelayApp.herald()
        ])
        return relay
    }

    private static func row(_ lookups: Int, left: Int) -> QueueRow {
        var values: [QueueColumn: SQLValue] = [
            .deviceToken: .text(Words.token), .topic: .text("com.example.chat"), .payload: .text(Words.payload),
        ]
        values[.giveUpAt] = StoredMoment.exactText(Words.now + .seconds(left))
        return QueueRow(
            id: 1,
            apnsID: "8f6b1c2e-6a3d-4b1f-9a57-0c7d2e4f5a6b",
            isUncertain: true,
            lookups: lookups,
            attempts: 0,
            parent: nil,
            device: nil,
            values: QueueColumn.allCases.map { values[$0] ?? .null }[...]
        )
    }

    private func change(
        _ answer: JournalResult,
        _ lookups: Int,
        left: Int = 3600
    ) async throws -> RowOutcome.Change? {
        guard case .settled(let outcome) = try await asked(answer, lookups, left: left) else { return nil }
        return outcome.change
    }

    @Test func `an unavailable journal is asked until the deadline`() async throws {
        for lookups in [0, 8, 500] {
            guard case .lookUp(let moment, "Uncertain", lookups + 1)? = try await change(.unavailable("x"), lookups)
            else {
                Issue.record("not asked again after \(lookups) lookups")
                continue
            }
            #expect(moment > Words.now && moment <= Words.now + .seconds(300))
        }
        // Once more at its end, and some more if it was hardly asked at all; then nobody knows.
        #expect(
            try await change(.unavailable("x"), 500, left: 2)
                == .lookUp(Words.now + .seconds(2), reason: "Uncertain", lookups: 501)
        )
        guard case .lookUp? = try await change(.unavailable("x"), 3, left: -60) else {
            Issue.record("given up after three lookups")
            return
        }
        #expect(try await change(.unavailable("x"), 8, left: -60) == .final(.expired, reason: "Uncertain"))
    }

    @Test func `the journal decides`() async throws {
        #expect(try await change(.accepted, 30, left: -60) == .final(.sent, reason: nil))
        guard case .notAccepted = try await asked(.notAccepted, 0) else {
            Issue.record("what the service did not take is sent")
            return
        }
        // One that came and of which no more is known after minutes died with the service.
        guard case .lookUp? = try await change(.pending, 7), case .unknown = try await asked(.pending, 8) else {
            Issue.record("what is under way is asked for eight times")
            return
        }
        guard case .unknown = try await asked(.forgotten, 0) else {
            Issue.record("what the journal has deleted it will not have later")
            return
        }
    }

    @Test func `a journal that has deleted lines of that time says nothing about what it has not`() throws {
        let noon = try #require(WallTime(rfc3339: "2026-11-21T12:00:00.000Z"))
        let stored = JournalLine(id: "x", time: "2026-11-21T12:00:00.000Z", state: "stored", reason: nil)
        func result(_ lines: [JournalLine], since: WallTime?, missing: String? = nil, sent: WallTime) -> JournalResult {
            JournalLines(lines: lines, completeSince: since, missingNodes: missing).result(lines, since: sent)
        }
        #expect(result([], since: nil, sent: noon) == .notAccepted)
        #expect(result([], since: noon, sent: noon + .seconds(60)) == .notAccepted)
        #expect(result([], since: noon, sent: noon + .seconds(59)) == .forgotten)
        #expect(result([stored], since: noon, sent: noon - .seconds(3600)) == .accepted)
        // The node may come back and have it.
        let unavailable = JournalResult.unavailable("nodes of its cluster did not answer: b")
        #expect(result([], since: noon, missing: "b", sent: noon) == unavailable)
    }

    @Test func `an unavailable journal is reported`() async throws {
        _ = try await asked(.unavailable("it answers 404"), 0) { relay in
            try await relay.context.store.prepare()
            await relay.monitor.checkOnce()
            let note = try #require(relay.context.health.notes.first)
            #expect(relay.context.health.notes.count == 1 && note.contains("is unavailable (it answers 404)"))
            #expect(relay.context.health.problems.isEmpty)
        }
    }

    /// The HTTP client quotes a field that it refuses.
    @Test(arguments: ["c0ffee\nde1eted", "c0ffee\u{0}"])
    func `a token that is not a field is not shown`(_ token: String) async {
        let client = JournalClient(console: "http://127.0.0.1:1") { token }
        guard case .failure(let error) = await client.lines("limit=1", upTo: 100) else {
            Issue.record("there is no journal")
            return
        }
        #expect(error.message == "Invalid header field values")
    }
}
