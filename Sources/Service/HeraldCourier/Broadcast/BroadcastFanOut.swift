import HeraldMailbox
import HeraldModel
import NIOCore

/// A broadcast for the connections of one event loop.
struct LoopBroadcast: Sendable {
    let order: BroadcastSend
    let packets: BroadcastPackets
}

/// The subscribers of each channel on one event loop, and the broadcasts that are on their way to them.
///
/// Sends one broadcast after the other, in the order in which they were accepted, and each in slices. Between two slices
/// the loop serves its other connections. A connection that takes nothing keeps its newest broadcast and delays no other.
final class BroadcastFanOut {
    /// Connections that are written to before the loop turns to others: a millisecond or two.
    private static let slice = 128

    private let eventLoop: any EventLoop
    private var subscribers: [ChannelID: [ChannelSubscription]] = [:]
    private var waiting: [LoopBroadcast] = []
    private var waitingHead = 0
    private var isScheduled = false
    /// The subscribers when the current broadcast began.
    private var audience: [ChannelSubscription] = []
    private var position = 0
    private var handed = 0
    /// The packets of the current broadcast.
    private(set) var packets: BroadcastPackets?

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func add(_ subscription: ChannelSubscription) {
        let id = subscription.feed.id
        subscription.index = subscribers[id]?.count ?? 0
        subscribers[id, default: []].append(subscription)
        subscription.feed.countSubscriber(1)
    }

    func remove(_ subscription: ChannelSubscription) {
        let id = subscription.feed.id
        subscription.end()
        // Moved out while it changes, so that it is not copied.
        guard var list = subscribers.removeValue(forKey: id) else { return }
        let last = list.removeLast()
        if last !== subscription {
            last.index = subscription.index
            list[subscription.index] = last
        }
        if !list.isEmpty { subscribers[id] = list }
        subscription.feed.countSubscriber(-1)
    }

    /// Adds broadcasts; begins at once unless others are under way.
    func send(_ broadcasts: [LoopBroadcast]) {
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
        audience = subscribers[waiting[waitingHead].order.feed.id] ?? []
        position = 0
        handed = 0
        return true
    }

    private func sendSlice(_ room: Int) -> Int {
        guard let packets else { return room }
        let end = min(audience.count, position + room)
        for subscription in audience[position..<end] {
            guard let sender = subscription.sender, sender.isOpen, subscription.accept(packets.broadcast) else {
                continue
            }
            sender.send(waitingOf: subscription)
            sender.flush()
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
