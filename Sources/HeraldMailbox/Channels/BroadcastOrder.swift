package import HeraldModel
import Synchronization

/// Who brings broadcasts to the devices that are connected: the courier.
package protocol BroadcastOutlet: AnyObject, Sendable {
    /// Brings a broadcast to all who are subscribed; broadcasts reach a device in the order of the calls.
    ///
    /// Called from any thread, under a lock: it notes the order for each event loop and returns at once. Every event loop
    /// says that it is done, by ``BroadcastOrder/finish(handed:)``.
    func send(_ order: BroadcastOrder)
}

/// One broadcast on its way to those who are subscribed.
package final class BroadcastOrder: Sendable {
    package let broadcast: Broadcast
    package let feed: ChannelFeed
    private struct State {
        var shares = 1
        var handed = 0
    }

    private let state = Mutex(State())
    private let finished: @Sendable (Int) -> Void

    /// `finished` is called once, from any thread, with the number of devices that it was handed to.
    package init(_ broadcast: Broadcast, _ feed: ChannelFeed, finished: @escaping @Sendable (Int) -> Void) {
        self.broadcast = broadcast
        self.feed = feed
        self.finished = finished
    }

    /// How many times ``finish(handed:)`` will be called; before the first of them.
    package func expect(shares: Int) {
        state.withLock { $0.shares = shares }
    }

    /// One of those who carry it out is done.
    package func finish(handed: Int) {
        let total = state.withLock { state -> Int? in
            state.shares -= 1
            state.handed += handed
            return state.shares <= 0 ? state.handed : nil
        }
        if let total { finished(total) }
    }
}
