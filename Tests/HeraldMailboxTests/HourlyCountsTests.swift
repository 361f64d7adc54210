import HeraldModel
import Testing

@testable import HeraldMailbox

struct HourlyCountsTests {
    private static let hour: Int64 = 3_600_000
    private static let alert = JournalTraits(pushType: .alert, priority: .immediate)

    private static func event(
        _ milliseconds: Int64,
        _ state: JournalState = .delivered,
        app: UInt32 = 1,
        traits: JournalTraits = alert
    ) -> JournalEvent {
        JournalEvent(
            time: WallTime(milliseconds: milliseconds),
            id: NotificationID(high: 1, low: 1),
            uniqueID: NotificationID(high: 1, low: 2),
            recipient: .device(DeviceNumber(1)),
            app: AppNumber(app),
            state: state,
            traits: traits
        )
    }

    private static func refused(_ environment: PushEnvironment) -> JournalEvent {
        JournalEvent(
            refused: JournalRefusal(reason: .badTopic, explanation: "", topic: "a", environment: environment),
            id: NotificationID(high: 1, low: 1),
            device: nil,
            app: nil,
            at: WallTime(milliseconds: 0),
            request: JournalRequest()
        )
    }

    @Test func `each line is counted with the others of its key, whatever came between`() {
        let hour = Self.hour
        let events =
            [0, hour - 1, hour, hour - 1, -1, -hour, -hour - 1, .min, .max].map { Self.event($0) }
            + [Self.event(0, .replaced), Self.event(0, app: 2), Self.event(0), Self.event(0, traits: .none)]
            + [.production, .sandbox, .sandbox, .production, .sandbox].map { Self.refused($0) }
        var counts = HourlyCounts()
        var expected: [TallyKey: Int] = [:]
        for event in events + events {
            counts.count(event)
            expected[TallyKey(event), default: 0] += 1
        }
        #expect(counts.counts == expected && !counts.isEmpty && counts.keyCount >= expected.count)
        var sum = HourlyCounts()
        sum.add(counts)
        sum.add(counts)
        #expect(sum.counts == expected.mapValues { $0 * 2 })
        sum.clear()
        #expect(sum.isEmpty && sum.counts.isEmpty)
    }

    @Test func `the lines of a commit are passed by state, and its requests by provider`() {
        var tally = JournalTally()
        tally.forEachState { _, _ in Issue.record("nothing was counted") }
        let events = [Self.event(0), Self.event(1), Self.event(0, .replaced), Self.refused(.sandbox)]
        for event in events { tally.count(event) }
        var states: [JournalState: Int] = [:]
        tally.forEachState { states[$0] = $1 }
        #expect(states == [.delivered: 2, .replaced: 1, .refusedByService: 1])
        #expect(tally.requests == [.unknown: 1] && tally.refused == [Self.refused(.sandbox)])
    }
}
