import HeraldConsole
import HeraldMailbox
import HeraldModel
import Synchronization

/// The new lines of this service's journal, with the names of devices, apps and providers.
final class ServiceLines: LineSource {
    /// The most lines in one message.
    static let messageLimit = 60
    /// Time after the last subscriber for which lines are kept for one that comes back.
    private static let patience = Duration.seconds(20)

    private let feed: JournalFeed
    private let searcher: JournalSearcher
    private let clock: any WallClock
    /// Keeps the feed going.
    private let last = Mutex<(number: Int, subscription: JournalSubscription?)>((0, nil))

    init(feed: JournalFeed, searcher: JournalSearcher, clock: any WallClock) {
        self.feed = feed
        self.searcher = searcher
        self.clock = clock
    }

    func follow(_ search: String, after place: UInt64?) async throws -> (any LineFollower)? {
        let filter = try await searcher.filter(try JournalSearchText(search, now: clock.now()))
        guard let subscription = feed.subscribe(after: place) else { return nil }
        return Follower(lines: self, subscription: subscription, filter: filter)
    }

    private func release(_ subscription: JournalSubscription) {
        let number = last.withLock { last in
            last = (last.number + 1, subscription)
            return last.number
        }
        Task {
            try? await Task.sleep(for: Self.patience)
            // Outside the lock, because its end takes that of the feed.
            let over = self.last.withLock { last -> JournalSubscription? in
                guard last.number == number else { return nil }
                return last.subscription.take()
            }
            withExtendedLifetime(over) {}
        }
    }

    private final class Follower: LineFollower {
        private let lines: ServiceLines
        private let subscription: JournalSubscription
        private let filter: JournalFilter

        init(lines: ServiceLines, subscription: JournalSubscription, filter: JournalFilter) {
            self.lines = lines
            self.subscription = subscription
            self.filter = filter
        }

        deinit { lines.release(subscription) }

        var place: UInt64 { subscription.place }

        func take() -> LineBatch? {
            guard let batch = subscription.poll() else { return nil }
            let found = batch.events.filter(filter.includes)
            let shown = found.suffix(ServiceLines.messageLimit)
            return LineBatch(
                items: shown.map(lines.searcher.reader.entry),
                more: found.count - shown.count,
                skipped: batch.skipped,
                place: batch.place
            )
        }
    }
}
