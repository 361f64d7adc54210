import HeraldMailbox
import HeraldModel

/// One channel on one connection: the broadcasts that the device has had, and the newest that it could not take yet.
///
/// Holds at most one broadcast, and stays on the event loop of its connection.
final class ChannelSubscription {
    let feed: ChannelFeed
    /// The filter, as the session's record keeps it.
    let filter: String
    var qualityOfService: UInt8
    /// The connection's; nil once that is gone or has unsubscribed.
    private(set) weak var sender: MessageSender?
    /// Index in the loop's list.
    var index = 0
    /// The newest broadcast that it was given; older ones are ignored.
    private(set) var lastNumber: UInt64
    /// The newest that could not go out yet.
    private(set) var waiting: Broadcast?
    /// Whether it waits in the connection's window.
    var isQueued = false
    private var inFlight = 0
    /// The newest broadcast before which nothing is unacknowledged.
    private(set) var acknowledged: UInt64
    /// The newest broadcast that was sent.
    private(set) var sentNumber: UInt64

    /// `acknowledged` is the newest broadcast that an earlier connection of the session had.
    init(_ feed: ChannelFeed, filter: String, qualityOfService: UInt8, acknowledged: UInt64, sender: MessageSender) {
        self.feed = feed
        self.filter = filter
        self.qualityOfService = qualityOfService
        self.sender = sender
        self.acknowledged = acknowledged
        lastNumber = acknowledged
        sentNumber = acknowledged
    }

    /// Takes a broadcast, in place of one that waits.
    /// - Returns: Whether it is newer than the last one.
    func accept(_ broadcast: Broadcast) -> Bool {
        guard broadcast.number > lastNumber else { return false }
        lastNumber = broadcast.number
        if waiting != nil { feed.count(.replaced) }
        waiting = broadcast
        return true
    }

    /// Takes the waiting broadcast, which is sent now or dropped.
    func takeWaiting() -> Broadcast? {
        waiting.take()
    }

    func sent(_ broadcast: Broadcast, isAcknowledged: Bool) {
        sentNumber = broadcast.number
        if isAcknowledged { inFlight += 1 } else if inFlight == 0 { acknowledged = sentNumber }
    }

    func acknowledge() {
        inFlight -= 1
        if inFlight == 0 { acknowledged = sentNumber }
    }

    /// Counts the broadcast in flight as one that the device is not sent again.
    func withhold() {
        acknowledge()
        feed.count(.endsConnection)
    }

    var isClosed: Bool { sender == nil }

    /// Sends nothing more.
    func end() {
        sender = nil
        waiting = nil
    }
}
