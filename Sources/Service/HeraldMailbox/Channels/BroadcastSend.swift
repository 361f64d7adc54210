package import HeraldModel
import Synchronization

/// Sends broadcasts to connected devices: the courier.
package protocol BroadcastOutlet: AnyObject, Sendable {
    /// Sends a broadcast to all subscribers; broadcasts reach a device in the order of the calls.
    ///
    /// Called from any thread, under a lock: an implementation hands it to each event loop and returns at once. Each event
    /// loop calls ``BroadcastSend/finish(handed:)``.
    func send(_ order: BroadcastSend)
}

/// One broadcast on its way to its subscribers on all event loops.
package final class BroadcastSend: Sendable {
    package let broadcast: Broadcast
    package let feed: ChannelFeed
    private struct State {
        var shares = 1
        var handed = 0
    }

    private let state = Mutex(State())
    private let finished: @Sendable (Int) -> Void

    /// `finished` is called once, from any thread, with the number of devices that were sent the broadcast.
    package init(_ broadcast: Broadcast, _ feed: ChannelFeed, finished: @escaping @Sendable (Int) -> Void) {
        self.broadcast = broadcast
        self.feed = feed
        self.finished = finished
    }

    /// Sets the number of calls to ``finish(handed:)``, before the first of them.
    package func expect(shares: Int) {
        state.withLock { $0.shares = shares }
    }

    /// Counts an event loop that is done.
    package func finish(handed: Int) {
        let total = state.withLock { state -> Int? in
            state.shares -= 1
            state.handed += handed
            return state.shares <= 0 ? state.handed : nil
        }
        if let total { finished(total) }
    }
}
