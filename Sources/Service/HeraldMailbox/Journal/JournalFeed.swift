import Synchronization

/// New lines of the journal, for those who watch it.
///
/// The store publishes the lines of each commit while ``isFollowed``. A ring keeps the newest, and each subscriber takes
/// what is new when it comes to it. A slow one skips lines, and learns how many.
package final class JournalFeed: Sendable {
    /// The number of lines that the ring keeps.
    package static let capacity = 4096
    /// The most subscribers at a time.
    package static let subscriberLimit = 64

    /// Lines that a subscriber has not seen yet.
    package struct Batch: Hashable, Sendable {
        /// Oldest first.
        package let events: [JournalEvent]
        /// The number of earlier lines that the subscriber was too slow for.
        package let skipped: UInt64
        /// The place after these lines, for ``JournalFeed/subscribe(after:)``.
        package let place: UInt64
    }

    private struct Reader {
        /// The number of the next line.
        var position: UInt64
        var waiting: CheckedContinuation<Void, Never>?
    }

    private struct State {
        var ring: [JournalEvent] = []
        /// The number of the first line that came to the empty ring.
        var start: UInt64 = 0
        /// The number of lines that were ever published.
        var end: UInt64 = 0
        var readers: [UInt64: Reader] = [:]
        var lastReader: UInt64 = 0

        func index(_ line: UInt64) -> Int { Int((line - start) % UInt64(JournalFeed.capacity)) }
    }

    private let state = Mutex(State())
    private let hasReaders = Atomic<Bool>(false)

    package init() {}

    /// Whether anybody watches; one relaxed load.
    package var isFollowed: Bool { hasReaders.load(ordering: .relaxed) }

    /// Makes a subscription to the lines from now on, or from a place.
    /// - Returns: nil if there are ``subscriberLimit`` already.
    package func subscribe(after place: UInt64? = nil) -> JournalSubscription? {
        let number = state.withLock { state -> UInt64? in
            guard state.readers.count < JournalFeed.subscriberLimit else { return nil }
            state.lastReader += 1
            state.readers[state.lastReader] = Reader(position: min(place ?? state.end, state.end))
            hasReaders.store(true, ordering: .relaxed)
            return state.lastReader
        }
        return number.map { JournalSubscription(feed: self, number: $0) }
    }

    /// Gives lines to the subscribers; never waits for one.
    package func publish(_ events: [JournalEvent]) {
        guard isFollowed, !events.isEmpty else { return }
        let waiting = state.withLock { state in
            for event in events {
                if state.ring.count < JournalFeed.capacity {
                    if state.ring.isEmpty { state.start = state.end }
                    state.ring.append(event)
                } else {
                    state.ring[state.index(state.end)] = event
                }
                state.end += 1
            }
            return state.readers.keys.compactMap { state.readers[$0]?.waiting.take() }
        }
        for continuation in waiting { continuation.resume() }
    }

    fileprivate func next(_ number: UInt64) async -> Batch? {
        while true {
            if let batch = take(number) { return batch }
            guard !Task.isCancelled, state.withLock({ $0.readers[number] != nil }) else { return nil }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isToWait = state.withLock { state in
                        // A cancellation from here on finds the continuation.
                        guard !Task.isCancelled, state.readers[number]?.position == state.end else { return false }
                        state.readers[number]?.waiting = continuation
                        return true
                    }
                    if !isToWait { continuation.resume() }
                }
            } onCancel: {
                state.withLock { $0.readers[number]?.waiting.take() }?.resume()
            }
        }
    }

    fileprivate func take(_ number: UInt64) -> Batch? {
        state.withLock { state in
            guard let position = state.readers[number]?.position, position < state.end else { return nil }
            let first = max(position, state.end - UInt64(state.ring.count))
            state.readers[number]?.position = state.end
            let events = (first..<state.end).map { state.ring[state.index($0)] }
            return Batch(events: events, skipped: first - position, place: state.end)
        }
    }

    fileprivate func place(_ number: UInt64) -> UInt64 {
        state.withLock { $0.readers[number]?.position ?? $0.end }
    }

    fileprivate func end(_ number: UInt64) {
        state.withLock { state in
            state.readers[number] = nil
            guard state.readers.isEmpty else { return }
            hasReaders.store(false, ordering: .relaxed)
            // Lines from now on are not published: a subscriber that comes back skips one at least.
            state.ring = []
            state.end += 1
        }
    }
}

/// A subscription to the journal's new lines, which ends with this object.
package final class JournalSubscription: Sendable {
    private let feed: JournalFeed
    private let number: UInt64

    fileprivate init(feed: JournalFeed, number: UInt64) {
        self.feed = feed
        self.number = number
    }

    deinit {
        feed.end(number)
    }

    /// The new lines; nil if there are none.
    package func poll() -> JournalFeed.Batch? {
        feed.take(number)
    }

    /// The place after the lines that were taken, for ``JournalFeed/subscribe(after:)``.
    package var place: UInt64 { feed.place(number) }

    /// Waits for new lines; one task at a time.
    /// - Returns: nil once the task is cancelled.
    package func next() async -> JournalFeed.Batch? {
        // A release before the end would end the subscription.
        defer { withExtendedLifetime(self) {} }
        return await feed.next(number)
    }
}
