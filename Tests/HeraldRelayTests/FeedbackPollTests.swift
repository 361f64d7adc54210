import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldProvider
@testable import HeraldRelay

/// A feedback list of an app with several topics.
@Suite struct FeedbackPollTests {
    /// Does something with a poll, an app with the topics `com.example.a` and `com.example.b`, and the poll's log.
    private func withPoll(_ body: (FeedbackPoll, RelayApp, LogNotes) async throws -> Void) async throws {
        try await Engine.all[0].with { store in
            let notes = LogNotes()
            let relay = Relay.one(store, notes: notes)
            var app = RelayApp.herald(["com.example.a", "com.example.b"])
            app.feedback = HostPort(host: "localhost", port: 1)
            let poll = FeedbackPoll(context: relay.context, deadTokens: relay.rows.deadTokens)
            try await body(poll, app, notes)
        }
    }

    @Test(arguments: [
        ("com.example.a (production)", false), ("com.example.b (production)", false),
        ("com.example.b.voip (production)", false), ("com.example.a (sandbox)", true),
        ("com.example.c (production)", true),
    ])
    func `a list stays unread while the breaker of one of its topics is open`(
        breaker: String,
        isRead: Bool
    ) async throws {
        try await withPoll { poll, app, notes in
            #expect(poll.deadTokens.note(app: breaker, answers: 21, deadTokens: 21))
            #expect(await poll.read(app).isEmpty)
            // Its certificate is empty, so no reading gets further.
            #expect(notes.all.contains { $0.hasPrefix("could not read the feedback list") } == isRead)
        }
    }

    @Test func `each topic of a list is judged by its own breaker`() async throws {
        try await withPoll { poll, app, _ in
            func held(_ count: Int) -> (topics: Set<String>, count: Int) {
                let entries = (0..<count).map { FeedbackEntry(time: Words.now, token: [UInt8($0)]) }
                let reports = poll.reports(entries, of: app, from: "feedback", devices: 0)
                return (Set(reports.filter(\.isHeld).map(\.token.topic)), reports.count)
            }
            // Twenty never open a breaker, however many topics they may belong to.
            #expect(held(20) == ([], 40))
            // With so many answers, one more is not unusual.
            #expect(!poll.deadTokens.note(app: "com.example.a (production)", answers: 1000, deadTokens: 0))
            #expect(held(1) == (["com.example.b"], 2))
        }
    }
}
