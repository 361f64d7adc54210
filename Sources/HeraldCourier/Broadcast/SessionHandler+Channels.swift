import HeraldMailbox
import HeraldModel
import HeraldWire
import NIOCore

// Broadcasts to the channels that the device is subscribed to.
extension SessionHandler {
    /// The device is subscribed to a channel from now on, or at another quality of service.
    func openChannel(_ filter: ChannelFilter, qualityOfService: UInt8, acknowledged: UInt64) {
        if let known = channels.first(where: { $0.filter == filter.name }) {
            known.qualityOfService = qualityOfService
            return
        }
        // None, for a channel that was deleted since the session was kept: nothing is ever sent to it.
        let app = App(topic: filter.bundle, environment: environment)
        guard let feed = clerk.office.feed(filter.id, of: app) else { return }
        let subscription = ChannelSubscription(
            feed,
            filter: filter.name,
            qualityOfService: qualityOfService,
            acknowledged: isPossible(acknowledged) ? acknowledged : 0,
            handler: self
        )
        channels.append(subscription)
        // On the list first, then what is stored: whatever comes in between comes twice, and is told apart by its number.
        loop.broadcasts.join(subscription)
        guard let newest = clerk.office.newest(filter.id, of: app), subscription.accept(newest) else { return }
        broadcastWaits(subscription)
    }

    /// Whether a session can have had a broadcast of that number.
    ///
    /// Not where the clock was set back since, and the service started again: held against it, the device would get
    /// nothing until the clock is where it was.
    private func isPossible(_ number: UInt64) -> Bool {
        number < Broadcast.firstNumber(at: clerk.clock.now() + .seconds(1))
    }

    func closeChannel(_ filter: ChannelFilter) {
        guard let index = channels.firstIndex(where: { $0.filter == filter.name }) else { return }
        loop.broadcasts.leave(channels.remove(at: index))
    }

    func closeChannels() {
        for subscription in channels { loop.broadcasts.leave(subscription) }
        channels = []
    }

    /// A channel's newest message is to go out as soon as the window, the socket and the device's power allow.
    func broadcastWaits(_ subscription: ChannelSubscription) {
        // After DISCONNECT nothing is sent ([MQTT-3.14.4-2]).
        guard isOpen, !subscription.isQueued, let waiting = subscription.waiting, mayGoOut(waiting) else { return }
        subscription.isQueued = true
        window.enqueue(.broadcast(subscription))
        sendWaiting()
    }

    /// Whether the device saves power now; what waited for that goes out when it no longer does.
    func setSavingPower(_ isSaving: Bool) {
        savesPower = isSaving
        guard !isSaving else { return }
        for subscription in channels { broadcastWaits(subscription) }
    }

    private func mayGoOut(_ broadcast: Broadcast) -> Bool {
        !savesPower || broadcast.priority == .immediate
    }

    /// It is the subscription's turn: its newest goes out.
    func send(_ subscription: ChannelSubscription) {
        subscription.isQueued = false
        // A newer one that may wait can have taken the place of one that may not.
        guard let waiting = subscription.waiting, mayGoOut(waiting), let broadcast = subscription.takeWaiting() else {
            return window.dropNext()
        }
        guard !broadcast.isExpired(at: clerk.clock.now()) else {
            window.dropNext()
            return subscription.feed.count(.expired)
        }
        let packets = packets(of: broadcast, subscription.feed)
        let qualityOfService = subscription.qualityOfService
        guard packets.size(version, qualityOfService) <= maximumPacketSize else {
            window.dropNext()
            return subscription.feed.count(.tooLarge)
        }
        guard let departure = window.takeNext() else { return }
        write { packets.write(version, packetIdentifier: departure.packetIdentifier, into: &$0) }
        subscription.sent(broadcast, isAcknowledged: departure.packetIdentifier != nil)
        if departure.packetIdentifier == nil { subscription.feed.count(.written) }
    }

    /// The packets of the broadcast at hand, or written anew for one that waited: less of its time is left.
    private func packets(of broadcast: Broadcast, _ feed: ChannelFeed) -> BroadcastPackets {
        if let packets = loop.broadcasts.packets, packets.broadcast.number == broadcast.number { return packets }
        return BroadcastPackets(broadcast, topic: feed.topic, now: clerk.clock.now(), &loop.properties)
    }

    /// What a session's record says of the channels.
    func note(in departure: SessionDeparture) -> SessionDeparture {
        guard !channels.isEmpty, case .keep(var record) = departure.record else { return departure }
        let had = channels.filter { $0.acknowledged > 0 }.map { ($0.filter, $0.acknowledged) }
        record.broadcasts = had.isEmpty ? nil : Dictionary(had) { first, _ in first }
        var departure = departure
        departure.record = .keep(record)
        return departure
    }
}
