import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldRelay

/// What becomes of a row that may have been sent, by what the journal says.
@Suite struct InquiryTests {
    private struct Fixed: Inquiry {
        let answer: JournalStanding

        func standing(of id: NotificationID, since start: WallTime) async -> JournalStanding { answer }
    }

    private struct Nobody: RelaySender {
        func send(_ request: PushRequest) async -> SendResult { .notSent("Unreachable") }
        func shutdown() async {}
    }

    /// Asks for a row that was asked for so often, at so many seconds before its time is over.
    private func asked(
        _ answer: JournalStanding,
        _ questions: Int,
        left: Int = 3600,
        afterwards: (Relay) async throws -> Void = { _ in }
    ) async throws -> Relay.InquiryResult? {
        var result: Relay.InquiryResult?
        try await Engine.all[0].withBare { store, _ in
            let relay = try self.relay(on: store, answer)
            result = await relay.inquire(Self.row(questions, left: left), RowReader(longestLife: .seconds(86_400)))
            try await afterwards(relay)
        }
        return result
    }

    private func relay(on store: SQLRelayStore, _ answer: JournalStanding) throws -> Relay {
        let relay = try Relay(
            configuration: RelayConfiguration(),
            store: store,
            owner: "one",
            clock: ManualClock(Words.now),
            logger: Logger(label: "test")
        ) { app in
            Route(app, sender: Nobody(), inquiry: Fixed(answer: answer), policy: RetryPolicy())
        }
        try relay.replace([
            RelayApp(
                name: "herald",
                topics: [],
                environment: .production,
                service: RelayApp.Place(host: "localhost", port: 1),
                credential: .certificate(pem: [])
            )
        ])
        return relay
    }

    private static func row(_ questions: Int, left: Int) -> QueueRow {
        var values: [QueueColumn: SQLValue] = [
            .deviceToken: .text(Words.token), .topic: .text("com.example.chat"), .payload: .text(Words.payload),
        ]
        values[.giveUpAt] = StoredMoment.exactText(Words.now + .seconds(left))
        return QueueRow(
            id: 1,
            apnsID: "8f6b1c2e-6a3d-4b1f-9a57-0c7d2e4f5a6b",
            isUncertain: true,
            questions: questions,
            attempts: 0,
            parent: nil,
            device: nil,
            values: QueueColumn.allCases.map { values[$0] ?? .null }
        )
    }

    private func change(
        _ answer: JournalStanding,
        _ questions: Int,
        left: Int = 3600
    ) async throws -> RowOutcome.Change? {
        guard case .settled(let outcome) = try await asked(answer, questions, left: left) else { return nil }
        return outcome.change
    }

    @Test func whoCannotBeAskedIsAskedUntilItsTimeIsOver() async throws {
        for questions in [0, 8, 500] {
            guard case .ask(let moment, "Uncertain", questions + 1)? = try await change(.unavailable("x"), questions)
            else {
                Issue.record("not asked again after \(questions) questions")
                continue
            }
            #expect(moment > Words.now && moment <= Words.now + .seconds(300))
        }
        // Once more at its end, and some more if it was hardly asked at all; then nobody knows.
        #expect(
            try await change(.unavailable("x"), 500, left: 2)
                == .ask(Words.now + .seconds(2), reason: "Uncertain", questions: 501)
        )
        guard case .ask? = try await change(.unavailable("x"), 3, left: -60) else {
            Issue.record("given up after three questions")
            return
        }
        #expect(try await change(.unavailable("x"), 8, left: -60) == .final(.expired, reason: "Uncertain"))
    }

    @Test func theJournalsWordHolds() async throws {
        #expect(try await change(.accepted, 30, left: -60) == .final(.sent, reason: nil))
        guard case .notTaken = try await asked(.notTaken, 0) else {
            Issue.record("what the service did not take is sent")
            return
        }
        // One that came and of which no more is known after minutes died with the service.
        guard case .ask? = try await change(.underWay, 7), case .unknown = try await asked(.underWay, 8) else {
            Issue.record("what is under way is asked for eight times")
            return
        }
    }

    @Test func ofAJournalThatDoesNotAnswerEverybodyHears() async throws {
        _ = try await asked(.unavailable("it answers 404"), 0) { relay in
            try await relay.store.prepare()
            try await relay.look()
            let note = try #require(relay.health.notes.first)
            #expect(relay.health.notes.count == 1 && note.contains("cannot be asked (it answers 404)"))
            #expect(relay.health.problems.isEmpty)
        }
    }
}
