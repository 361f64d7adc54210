import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldWire
import NIOCore

/// One event loop, as other threads see it: they leave messages and broadcasts for its connections.
final class CourierLoop: Sendable {
    /// Messages for single connections; what the messages of one turn write is flushed once.
    let inbox: LoopInbox<LinkMessage>
    let broadcasts: LoopInbox<LoopBroadcast>
    private let bound: NIOLoopBoundBox<LoopState?>
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        let bound = NIOLoopBoundBox.makeEmptyBox(valueType: LoopState.self, eventLoop: eventLoop)
        self.bound = bound
        broadcasts = LoopInbox(on: eventLoop) { broadcasts in
            if let state = bound.value { return state.broadcasts.send(broadcasts) }
            // No device has ever connected here.
            for broadcast in broadcasts { broadcast.order.finish(handed: 0) }
        }
        inbox = LoopInbox(on: eventLoop) { messages in
            for message in messages { message.link.handle(message.content) }
            for message in messages { message.link.flush() }
        }
    }

    /// On the loop only.
    var state: LoopState {
        if let state = bound.value { return state }
        let state = LoopState(eventLoop)
        bound.value = state
        return state
    }
}

/// Things that the connections of one event loop share, and that never leave the loop.
final class LoopState {
    let wheel: DeadlineWheel
    let broadcasts: BroadcastFanOut
    /// Filled anew for each notification.
    var properties = MQTTPropertyBlock()
    /// `apps/<topic>` in bytes; as many as there are apps.
    private var topics: [AppNumber: [UInt8]] = [:]

    init(_ eventLoop: any EventLoop) {
        wheel = DeadlineWheel(eventLoop: eventLoop)
        broadcasts = BroadcastFanOut(eventLoop)
    }

    func topic(_ app: AppNumber, _ registry: any DeviceRegistry) -> [UInt8]? {
        if let known = topics[app] { return known }
        guard let topic = registry.app(app)?.topic else { return nil }
        let bytes = Array(CourierTopic.notifications(topic).name.utf8)
        topics[app] = bytes
        return bytes
    }

    /// The packets of the current broadcast; written anew for a broadcast that waited, since less of its time is left.
    func packets(of broadcast: Broadcast, topic: [UInt8], now: WallTime) -> BroadcastPackets {
        if let packets = broadcasts.packets, packets.broadcast.number == broadcast.number { return packets }
        return BroadcastPackets(broadcast, topic: topic, now: now, &properties)
    }
}
