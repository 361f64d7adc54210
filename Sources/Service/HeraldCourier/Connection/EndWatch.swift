import HeraldMailbox
import HeraldModel
import Synchronization

/// The part of one connection in ``RepeatedEnds``: when its last message was written, and whether it gets one at a time.
struct EndWatch {
    /// The knowledge of a device of which ``RepeatedEnds`` knows something; out of line, since that is rare.
    private final class Past {
        let withheld: [ChannelID: UInt64]
        let wasSuspected: Bool
        /// The window after the device has acknowledged what waits; nil while it gets as many messages as its window allows.
        var widerLimit: Int?

        init(withheld: [ChannelID: UInt64], wasSuspected: Bool) {
            self.withheld = withheld
            self.wasSuspected = wasSuspected
        }
    }

    private var past: Past?
    private var lastWritten = WallTime(milliseconds: 0)
    /// The channel of the last message, if that was a broadcast at QoS 0.
    private var lastUnconfirmed: ChannelSubscription?

    init() {}

    /// Watches the connection of a device; a suspected one has one message in flight at most.
    init(_ device: DeviceNumber, _ courier: CourierState, window: inout DeliveryWindow) {
        let (isSuspected, withheld) = courier.repeatedEnds.withLock {
            ($0.isSuspected(device), $0.withheldBroadcasts(of: device))
        }
        guard isSuspected || !withheld.isEmpty else { return }
        past = Past(withheld: withheld, wasSuspected: isSuspected)
        guard isSuspected else { return }
        past?.widerLimit = window.limit
        window.limit = 1
    }

    /// The newest broadcast of a channel that was withheld; 0 for none.
    func withheld(of channel: ChannelID) -> UInt64 { past?.withheld[channel] ?? 0 }

    /// Notes that a notification, or a broadcast of this channel at QoS 0, was written.
    mutating func wrote(at now: WallTime, unconfirmed subscription: ChannelSubscription? = nil) {
        lastWritten = now
        lastUnconfirmed = subscription
    }

    /// Widens the window once a suspected device has acknowledged a message and nothing waits.
    mutating func acknowledged(_ message: DeliveryWindow.Message, _ window: inout DeliveryWindow) {
        guard let past, let limit = past.widerLimit, window.queuedCount == 0, window.inFlightCount == 0 else { return }
        if case .token = message { return }
        past.widerLimit = nil
        window.limit = limit
    }

    /// Judges the end of the connection.
    /// - Returns: The message that the device is not sent again, and its packet identifier, which is nil at QoS 0; nil mostly.
    func withheld(
        after end: PeerEnd,
        of device: DeviceNumber,
        _ window: DeliveryWindow,
        _ courier: CourierState
    ) -> (message: DeliveryWindow.Message, packetIdentifier: UInt16?)? {
        let wasSuspected = past?.wasSuspected ?? false
        guard wasSuspected || window.inFlightCount > 0 || lastUnconfirmed != nil else { return nil }
        var left: [(packetIdentifier: UInt16?, message: DeliveryWindow.Message)] = window.inFlight.map { ($0, $1) }
        if left.isEmpty, let lastUnconfirmed { left = [(nil, .broadcast(lastUnconfirmed))] }
        let cause = RepeatedEnds.Cause(end, after: courier.clock.now() - lastWritten)
        let unacknowledged = left.map { RepeatedEnds.Message($0.message) }
        let wasCleared = wasSuspected && past?.widerLimit == nil
        let isWithheld = courier.repeatedEnds.withLock {
            $0.ended(device, cause, unacknowledged: unacknowledged, wasCleared: wasCleared)
        }
        guard isWithheld, let one = left.first else { return nil }
        return (one.message, one.packetIdentifier)
    }
}

extension RepeatedEnds.Message {
    init(_ message: DeliveryWindow.Message) {
        switch message {
        case .delivery(let delivery): self = .notification(delivery.envelope.notification.uniqueID)
        case .broadcast(let subscription): self = .broadcast(subscription.feed.id, number: subscription.sentNumber)
        case .token, .announcement: self = .token
        }
    }
}
