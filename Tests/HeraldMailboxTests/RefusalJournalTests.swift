import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

struct RefusalJournalTests {
    private let clock = ManualClock()
    private let store: MemoryStore
    private let journal: RefusalJournal

    init() {
        store = MemoryStore(clock: clock)
        journal = RefusalJournal(store: store, burst: 20, perSecond: 10)
    }

    /// Refuses requests.
    /// - Returns: The number of lines that were made.
    private func refuse(_ count: Int) -> Int {
        var made = 0
        for _ in 0..<count {
            journal.record(at: clock.now()) {
                made += 1
                return JournalEvent(
                    refused: JournalRefusal(
                        reason: .badTopic,
                        explanation: "no",
                        topic: "com.example.nobody",
                        environment: .sandbox
                    ),
                    id: NotificationID(high: 1, low: UInt64(made)),
                    device: nil,
                    app: nil,
                    at: clock.now(),
                    request: JournalRequest(sender: SenderNumber(3), payloadBytes: 7)
                )
            }
        }
        return made
    }

    @Test func `a flood of refused requests has as many lines as the limit, and makes no others`() async throws {
        #expect(refuse(1000) == 20)
        clock.advance(by: .seconds(1))
        #expect(refuse(1000) == 10)
        let topic = try #require(Topic("com.example.nobody"))
        let lines = try await store.lines(matching: .topicWithoutApp(topic), limit: 100)
        #expect(lines.count == 30)
        let line = try #require(lines.first)
        #expect(line.device == nil && line.app == JournalRefusal.noApp && line.uniqueID == line.id)
        #expect(line.refusal?.reason == .badTopic && line.request?.sender == SenderNumber(3))
    }
}
