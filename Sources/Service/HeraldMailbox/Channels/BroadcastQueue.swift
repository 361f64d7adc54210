import HeraldModel

/// The broadcasts between the store and the event loops; without clock or lock.
///
/// This node's own are refused while ``underWay`` is at the limit. Those of other nodes come nevertheless: from twice the
/// limit on they wait, and of each channel only the newest, as for a device that takes nothing. So what waits is bounded by
/// the number of channels.
struct BroadcastQueue {
    /// A step with a broadcast that came from the store.
    enum Step: Hashable {
        /// It goes to the event loops now, and counts as under way.
        case send
        /// It waits; an older one of its channel, which waited, is dropped.
        case wait(dropping: Broadcast?)
    }

    private let limit: Int
    /// The broadcasts that event loops are sending.
    private(set) var underWay = 0
    private var waiting: [ChannelID: Broadcast] = [:]
    /// The channels in the order in which they began to wait, from ``head`` on.
    private var order: [ChannelID] = []
    private var head = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether a provider's broadcast is accepted.
    var hasRoom: Bool { underWay < limit }

    mutating func add(_ broadcast: Broadcast) -> Step {
        if underWay < 2 * limit, waiting[broadcast.channel] == nil {
            underWay += 1
            return .send
        }
        let dropped = waiting.updateValue(broadcast, forKey: broadcast.channel)
        if dropped == nil { order.append(broadcast.channel) }
        return .wait(dropping: dropped)
    }

    /// The event loops are done with a broadcast.
    /// - Returns: The next one, which goes to them now and counts as under way.
    mutating func finished() -> Broadcast? {
        underWay -= 1
        guard underWay < 2 * limit, head < order.count else { return nil }
        let next = waiting.removeValue(forKey: order[head])
        head += 1
        if head == order.count {
            order = []
            head = 0
        } else if head >= 1024, head * 2 > order.count {
            order.removeFirst(head)
            head = 0
        }
        if next != nil { underWay += 1 }
        return next
    }
}
