import HeraldMailbox
import HeraldModel
import HeraldWire

/// One channel on one connection: what the device has had of it, and the newest that it could not take yet.
///
/// It holds one message at the most, whatever is sent to the channel; it stays on the event loop of its connection.
final class ChannelSubscription {
    let feed: ChannelFeed
    /// The filter, as the session's record keeps it.
    let filter: String
    var qualityOfService: UInt8
    /// The connection; nil once it is gone or has unsubscribed.
    private(set) weak var handler: SessionHandler?
    /// Its place on the loop's list.
    var place = 0
    /// The newest broadcast that it was given: what is not newer is not for this connection any more.
    private(set) var lastNumber: UInt64
    /// The newest that could not go out yet.
    private(set) var waiting: Broadcast?
    /// Whether its turn to send will come.
    var isQueued = false
    private var inFlight = 0
    /// The newest of which nothing older is unacknowledged.
    private(set) var acknowledged: UInt64
    private var sentNumber: UInt64

    /// `acknowledged` is the newest that an earlier connection of the session had.
    init(_ feed: ChannelFeed, filter: String, qualityOfService: UInt8, acknowledged: UInt64, handler: SessionHandler) {
        self.feed = feed
        self.filter = filter
        self.qualityOfService = qualityOfService
        self.handler = handler
        self.acknowledged = acknowledged
        lastNumber = acknowledged
        sentNumber = acknowledged
    }

    /// Takes a broadcast, in place of one that waits.
    ///
    /// - Returns: Whether it is one for this connection.
    func accept(_ broadcast: Broadcast) -> Bool {
        guard broadcast.number > lastNumber else { return false }
        lastNumber = broadcast.number
        if waiting != nil { feed.count(.replaced) }
        waiting = broadcast
        return true
    }

    /// Takes away what waits, which goes out now or never.
    func takeWaiting() -> Broadcast? {
        waiting.take()
    }

    func sent(_ broadcast: Broadcast, isAcknowledged: Bool) {
        sentNumber = broadcast.number
        if isAcknowledged { inFlight += 1 } else if inFlight == 0 { acknowledged = sentNumber }
    }

    func haveAcknowledgement() {
        inFlight -= 1
        if inFlight == 0 { acknowledged = sentNumber }
    }

    /// Nothing more of it goes out.
    func end() {
        handler = nil
        waiting = nil
    }
}
