import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

struct JournalFeedingTests {
    @Test func `a subscriber gets the lines that are durable`() async throws {
        let fixture = try SQLiteFixture()
        let store = fixture.sqlite
        let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
        let lines = [JournalState.received, .delivered].map { state in
            JournalEvent(
                time: WallTime(milliseconds: 5),
                id: NotificationID(high: 0, low: 1),
                uniqueID: NotificationID(high: 0, low: 2),
                slot: slot,
                state: state
            )
        }
        store.record(lines)
        #expect(try await store.lines(matching: .device(slot.device), limit: 10) == lines)
        let subscription = try #require(store.feed.subscribe())
        store.record(Array(lines.reversed()))
        var seen: [JournalEvent] = []
        while seen.count < 2 { seen += await subscription.next()?.events ?? [] }
        #expect(seen == lines.reversed())
        await fixture.close()
    }
}
