import HeraldDoor
import HeraldMailbox
import HeraldModel
import NIOCore

/// A broadcast for the connections of one event loop.
struct LoopBroadcast: Sendable {
    let order: BroadcastOrder
    let packets: BroadcastPackets
}

/// Who on one event loop is subscribed to which channel, and the broadcasts that are on their way to them.
///
/// One broadcast after the other, in the order in which they were taken, each in slices: between two slices the loop
/// serves its other connections. A connection that takes nothing keeps its newest and holds nobody up.
final class BroadcastDesk {
    /// How many connections are written to before the loop turns to others: a millisecond or two.
    private static let slice = 128

    private let eventLoop: any EventLoop
    private var members: [ChannelID: [ChannelSubscription]] = [:]
    private var waiting: [LoopBroadcast] = []
    private var waitingHead = 0
    private var isScheduled = false
    /// Those whom the broadcast at hand goes to: who was there when it came.
    private var audience: [ChannelSubscription] = []
    private var position = 0
    private var handed = 0
    /// The packets of the broadcast at hand.
    private(set) var packets: BroadcastPackets?

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func join(_ subscription: ChannelSubscription) {
        let id = subscription.feed.id
        subscription.place = members[id]?.count ?? 0
        members[id, default: []].append(subscription)
        subscription.feed.countSubscriber(1)
    }

    func leave(_ subscription: ChannelSubscription) {
        let id = subscription.feed.id
        subscription.end()
        // Moved out while it changes, so that it is not copied.
        guard var list = members.removeValue(forKey: id) else { return }
        let last = list.removeLast()
        if last !== subscription {
            last.place = subscription.place
            list[subscription.place] = last
        }
        if !list.isEmpty { members[id] = list }
        subscription.feed.countSubscriber(-1)
    }

    /// Takes broadcasts in; begins at once unless others are under way.
    func take(_ broadcasts: [LoopBroadcast]) {
        waiting += broadcasts
        if !isScheduled { proceed() }
    }

    private func proceed() {
        isScheduled = false
        var room = Self.slice
        while room > 0 {
            guard packets != nil || beginNext() else { return }
            room -= sendSlice(room)
            if position == audience.count { endCurrent() }
        }
        guard packets != nil || waitingHead < waiting.count else { return }
        isScheduled = true
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.execute { bound.value.proceed() }
    }

    private func beginNext() -> Bool {
        guard waitingHead < waiting.count else {
            waiting.removeAll(keepingCapacity: waiting.count <= 64)
            waitingHead = 0
            return false
        }
        packets = waiting[waitingHead].packets
        audience = members[waiting[waitingHead].order.feed.id] ?? []
        position = 0
        handed = 0
        return true
    }

    private func sendSlice(_ room: Int) -> Int {
        guard let packets else { return room }
        let end = min(audience.count, position + room)
        for subscription in audience[position..<end] {
            guard let handler = subscription.handler, handler.isOpen, subscription.accept(packets.broadcast) else {
                continue
            }
            handler.broadcastWaits(subscription)
            handler.flush()
            handed += 1
        }
        defer { position = end }
        return max(1, end - position)
    }

    private func endCurrent() {
        waiting[waitingHead].order.finish(handed: handed)
        waitingHead += 1
        packets = nil
        audience = []
    }
}
