import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

struct SenderTableTests {
    private func line(_ number: UInt64, _ sender: SenderNumber) -> JournalEvent {
        JournalEvent(
            time: WallTime(milliseconds: 5),
            id: NotificationID(high: 0, low: number),
            uniqueID: NotificationID(high: 1, low: number),
            slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
            state: .received,
            request: JournalRequest(sender: sender, pushType: .voip, priority: .low, payloadBytes: 300)
        )
    }

    @Test func `the names that lines use survive a restart with their numbers`() async throws {
        let fixture = try SQLiteFixture()
        let names = fixture.sqlite.senders
        let (first, second) = (names.number(of: "key A"), names.number(of: "certificate B"))
        fixture.sqlite.record([line(1, second), line(2, first)])
        try await fixture.restart()
        // No line uses this one before the next restart.
        _ = fixture.sqlite.senders.number(of: "unused")
        try await fixture.restart()
        let again = fixture.sqlite.senders
        #expect(again.name(of: first) == "key A" && again.name(of: second) == "certificate B")
        #expect(again.number(of: "certificate B") == second)
        let third = again.number(of: "third")
        #expect(third == SenderNumber(3))
        fixture.sqlite.record([line(3, third)])
        try await fixture.restart()
        #expect(fixture.sqlite.senders.name(of: third) == "third")
        let lines = try await fixture.sqlite.lines(matching: .device(DeviceNumber(1)), limit: 9)
        #expect(lines == [line(1, second), line(2, first), line(3, third)])
        await fixture.close()
    }

    @Test func `refused requests of a topic without an app are found, and have no line while the disk is full`()
        async throws
    {
        let fixture = try SQLiteFixture()
        let store = fixture.sqlite
        let topics: [String] = ["com.example.a", "com.example.b"]
        let refused = topics.enumerated().map { number, topic in
            JournalEvent(
                refused: JournalRefusal(
                    reason: .topicDisallowed,
                    explanation: "the key may not send to \(topic)",
                    topic: topic,
                    environment: .production
                ),
                id: NotificationID(high: 0, low: UInt64(number)),
                device: nil,
                app: nil,
                at: WallTime(milliseconds: 5),
                request: JournalRequest()
            )
        }
        for line in refused { #expect(store.recordRefusal(line)) }
        let topic = try #require(Topic("com.example.b"))
        #expect(try await store.lines(matching: .topicWithoutApp(topic), limit: 9) == [refused[1]])
        store.gate.set(.lowOnSpace)
        #expect(!store.recordRefusal(refused[0]))
        await fixture.close()
    }
}
