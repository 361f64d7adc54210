import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldConsole

@Suite struct RefusalGroupsTests {
    private func refusal(
        _ number: UInt64,
        topic: String = "com.example.app",
        reason: RefusalReason = .topicDisallowed,
        environment: PushEnvironment = .sandbox,
        minute: Int64 = 100
    ) -> JournalEvent {
        JournalEvent(
            refused: JournalRefusal(
                reason: reason,
                explanation: "why \(number)",
                topic: topic,
                environment: environment
            ),
            id: NotificationID(high: 0, low: number),
            device: nil,
            app: nil,
            at: WallTime(seconds: minute * 60),
            request: JournalRequest(sender: SenderNumber(7))
        )
    }

    @Test func `requests with one provider, topic, environment and reason are one group`() {
        var groups = RefusalGroups()
        for number in 1...7 { groups.add(refusal(UInt64(number))) }
        groups.add(refusal(8, reason: .badTopic))
        groups.add(refusal(9, topic: "com.example.other"))
        groups.add(refusal(10, environment: .production))
        #expect(groups.all.map(\.count) == [1, 1, 1, 7])
        #expect(groups.all.map(\.key.environment) == [.production, .sandbox, .sandbox, .sandbox])
        #expect(groups.all.last?.samples.map(\.explanation) == ["why 3", "why 4", "why 5", "why 6", "why 7"])
    }

    @Test func `the group that was not seen for longest makes room`() {
        var groups = RefusalGroups()
        for number in 0..<RefusalGroups.capacity { groups.add(refusal(1, topic: "a.\(number)")) }
        groups.add(refusal(2, topic: "a.0"))
        groups.add(refusal(3, topic: "a.new"))
        let topics = groups.all.compactMap(\.key.topic)
        #expect(topics.count <= RefusalGroups.capacity)
        #expect(topics.starts(with: ["a.new", "a.0"]))
        #expect(!topics.contains("a.1"))
    }

    @Test func `counts by minute are those of the last hour`() {
        var counts = MinuteCounts()
        counts.add(at: WallTime(seconds: 6000))
        counts.add(2, at: WallTime(seconds: 6060))
        #expect(counts.last(at: WallTime(seconds: 6060)).suffix(2) == [1, 2])
        #expect(counts.last(at: WallTime(seconds: 6120)).suffix(3) == [1, 2, 0])
        #expect(counts.last(at: WallTime(seconds: 6060 + 3600)).reduce(0, +) == 0)
        counts.add(at: WallTime(seconds: 90_000))
        #expect(counts.last(at: WallTime(seconds: 90_000)).reduce(0, +) == 1)
        // Set back by a day.
        counts.add(3, at: WallTime(seconds: 600))
        #expect(counts.last(at: WallTime(seconds: 600)).reduce(0, +) == 3)
    }

    @Test func `the share is that of the provider's requests of the last hour`() throws {
        var groups = RefusalGroups()
        let time = WallTime(seconds: 6000)
        groups.add(refusal(1))
        #expect(groups.share(of: try #require(groups.all.first), at: time) == nil)
        groups.count(4, of: SenderNumber(7), at: time)
        groups.count(96, of: SenderNumber(8), at: time)
        #expect(groups.share(of: try #require(groups.all.first), at: time) == 0.25)
    }

    @Test func `many refusals of a provider are a problem`() {
        let book = RefusalBook(provider: { _ in "key K" }, app: { _ in nil })
        let time = WallTime(seconds: 6000)
        book.add([SenderNumber(7): 19], refused: (1...19).map { refusal($0) }, at: time)
        #expect(book.findings(at: time).isEmpty)
        book.add([SenderNumber(7): 1], refused: [refusal(20)], at: time)
        #expect(book.findings(at: time).map(\.kind) == [.refusals])
        book.add([SenderNumber(7): 1000], refused: [], at: time)
        #expect(book.findings(at: time).isEmpty)
        let entry = book.entries(at: time).first
        #expect(entry?.provider == "key K" && entry?.topic == "com.example.app" && entry?.status == 400)
        #expect(entry?.samples.first?.explanation == "why 20")
    }
}
