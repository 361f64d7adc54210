import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldRelay

/// The column `attempts`.
@Suite(.timeLimit(.minutes(10))) struct AttemptsTests {
    /// A service that refuses every token, over an interface without priority 1.
    private struct Refuser: RelaySender {
        let refusal: PushAnswer

        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
            for (place, request) in requests.enumerated() {
                report(place, request.priority == .low ? .refused(RowError(.priorityNotCarried)) : .answered(refusal))
            }
        }

        func shutdown() async {}
    }

    @Test(arguments: Engine.all) func `what the relay refuses itself is not an attempt`(_ engine: Engine) async throws {
        let body = Array(#"{"reason":"BadDeviceToken"}"#.utf8)
        let sender = Refuser(refusal: try PushAnswer(status: 400, field: { _ in nil }, body: body))
        try await engine.with { store in
            let relay = Relay.one(store, RouteList { Route($0, sender: sender, journal: nil, backOff: RetryBackOff()) })
            try relay.replace([
                RelayApp.herald()
            ])
            let (sent, bad) = (try await store.queue(), try await store.queue(topic: "not a topic"))
            let foreign = try await store.queue()
            try await store.run("UPDATE push_queue SET priority = 1 WHERE id = ?1", .int(foreign))
            let outcomes = Mutex<[RowOutcome]>([])
            await relay.rows.process(try await store.claim()) { _, outcome in
                if let outcome { outcomes.withLock { $0.append(outcome) } }
            }
            #expect(try await store.finish(outcomes.withLock { $0 }, owner: "one").count == 3)
            let wanted: [(id: Int64, reason: String, attempts: Int64)] = [
                (sent, "BadDeviceToken", 1), (bad, "BadTopic", 0), (foreign, "PriorityNotCarried", 0),
            ]
            for row in wanted {
                #expect(try await store.column("status", of: row.id).text == "refused")
                #expect(try await store.column("reason", of: row.id).text == row.reason)
                #expect(try await store.column("attempts", of: row.id).int == row.attempts, "\(row.reason)")
            }
        }
    }
}
