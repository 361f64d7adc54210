import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldWire
import NIOCore

/// What the connections of one event loop share.
final class CourierLoop: Sendable {
    /// Things that never leave the loop.
    final class Desk {
        let wheel: DeadlineWheel
        let broadcasts: BroadcastDesk
        /// Filled anew for each notification.
        var properties = MQTTPropertyBlock()
        /// `apps/<topic>` in bytes; as many as there are apps.
        private var topics: [AppNumber: [UInt8]] = [:]

        init(_ eventLoop: any EventLoop) {
            wheel = DeadlineWheel(eventLoop: eventLoop)
            broadcasts = BroadcastDesk(eventLoop)
        }

        func topic(_ app: AppNumber, _ office: any DeviceOffice) -> [UInt8]? {
            if let known = topics[app] { return known }
            guard let topic = office.app(app)?.topic else { return nil }
            let bytes = Array(CourierTopic.notifications(topic).name.utf8)
            topics[app] = bytes
            return bytes
        }
    }

    /// What other threads leave for the loop's connections; what the orders of one turn write is flushed once.
    let inbox: LoopInbox<LinkOrder>
    /// What the loop's connections are to be told of channels.
    let broadcasts: LoopInbox<LoopBroadcast>
    private let bound: NIOLoopBoundBox<Desk?>
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        let bound = NIOLoopBoundBox.makeEmptyBox(valueType: Desk.self, eventLoop: eventLoop)
        self.bound = bound
        broadcasts = LoopInbox(on: eventLoop) { broadcasts in
            if let desk = bound.value { return desk.broadcasts.take(broadcasts) }
            // Nobody has ever connected here.
            for broadcast in broadcasts { broadcast.order.finish(handed: 0) }
        }
        inbox = LoopInbox(on: eventLoop) { orders in
            for order in orders { order.link.carryOut(order.content) }
            for order in orders { order.link.flush() }
        }
    }

    /// On the loop only.
    var desk: Desk {
        if let desk = bound.value { return desk }
        let desk = Desk(eventLoop)
        bound.value = desk
        return desk
    }
}
