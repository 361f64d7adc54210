import HeraldModel
import Testing

@testable import HeraldMailbox

struct JournalFeedTests {
    private static func events(_ numbers: ClosedRange<UInt64>) -> [JournalEvent] {
        numbers.map { number in
            JournalEvent(
                time: WallTime(milliseconds: Int64(number)),
                id: NotificationID(high: 1, low: number),
                uniqueID: NotificationID(high: 2, low: number),
                slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
                state: .received
            )
        }
    }

    @Test func `each subscriber gets the lines since its beginning`() async throws {
        let feed = JournalFeed()
        #expect(!feed.isFollowed)
        feed.publish(Self.events(1...3))
        let first = try #require(feed.subscribe())
        #expect(feed.isFollowed)
        feed.publish(Self.events(4...5))
        let second = try #require(feed.subscribe())
        feed.publish(Self.events(6...6))
        #expect(await first.next() == JournalFeed.Batch(events: Self.events(4...6), skipped: 0, place: 3))
        #expect(await second.next() == JournalFeed.Batch(events: Self.events(6...6), skipped: 0, place: 3))
        withExtendedLifetime((first, second)) {}
    }

    @Test func `a subscriber waits for the next lines`() async throws {
        let feed = JournalFeed()
        let subscription = try #require(feed.subscribe())
        async let batch = subscription.next()
        await Task.yield()
        feed.publish(Self.events(1...1))
        #expect(await batch?.events == Self.events(1...1))
    }

    @Test func `a slow subscriber skips lines, and knows how many`() async throws {
        let feed = JournalFeed()
        let subscription = try #require(feed.subscribe())
        let capacity = UInt64(JournalFeed.capacity)
        feed.publish(Self.events(1...100))
        feed.publish(Self.events(101...capacity + 10))
        let batch = await subscription.next()
        #expect(batch?.skipped == 10)
        #expect(batch?.events == Self.events(11...capacity + 10))
        feed.publish(Self.events(1...1))
        #expect(
            await subscription.next() == JournalFeed.Batch(events: Self.events(1...1), skipped: 0, place: capacity + 11)
        )
    }

    @Test func `a subscriber that comes back goes on where it was, or knows that it missed lines`() throws {
        let feed = JournalFeed()
        var other = feed.subscribe()
        feed.publish(Self.events(1...3))
        let place = try #require(feed.subscribe(after: 0)?.poll()).place
        feed.publish(Self.events(4...4))
        let again = feed.subscribe(after: place)
        #expect(again?.poll() == JournalFeed.Batch(events: Self.events(4...4), skipped: 0, place: 4))
        #expect(again?.poll() == nil)
        withExtendedLifetime((other, again)) {}
        other = nil
    }

    @Test func `lines that nobody followed are missed`() throws {
        let feed = JournalFeed()
        var first = feed.subscribe()
        feed.publish(Self.events(1...3))
        let place = first?.poll()?.place
        first = nil
        #expect(place == 3)
        feed.publish(Self.events(4...9))
        let again = feed.subscribe(after: place)
        feed.publish(Self.events(10...11))
        let batch = try #require(again?.poll())
        #expect(batch.events == Self.events(10...11))
        #expect(batch.skipped > 0)
        withExtendedLifetime(again) {}
    }

    @Test func `a cancelled subscriber gets nothing`() async throws {
        let feed = JournalFeed()
        let subscription = try #require(feed.subscribe())
        let task = Task { await subscription.next() }
        await Task.yield()
        task.cancel()
        #expect(await task.value == nil)
    }

    @Test func `subscribers are limited, and leave their places`() throws {
        let feed = JournalFeed()
        var subscriptions = (0..<JournalFeed.subscriberLimit).compactMap { _ in feed.subscribe() }
        #expect(subscriptions.count == JournalFeed.subscriberLimit)
        #expect(feed.subscribe() == nil)
        subscriptions.removeLast()
        #expect(feed.subscribe() != nil)
        subscriptions = []
        #expect(!feed.isFollowed)
    }
}
