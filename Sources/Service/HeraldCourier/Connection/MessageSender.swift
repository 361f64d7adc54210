import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// Sends packets and messages to a device, as its ``DeliveryWindow`` and its socket allow, and reports how deliveries ended.
///
/// Written packets are gathered and flushed once per turn of the event loop.
final class MessageSender: DeadlineHolder {
    private let courier: CourierState
    private let loop: LoopState
    /// Nil once the connection is gone, so that neither holds the other.
    private var attached: (connection: MQTTConnection, context: ChannelHandlerContext)?
    /// The terms of the device: before CONNECT is accepted, the version in which it can be refused; the bytes of a packet.
    var accepts = (version: MQTTVersion.v5, packetBytes: Int.max)
    private(set) var claimed = (device: DeviceNumber(0), fence: UInt64(0))
    private var window = DeliveryWindow(limit: 1)
    private var watch = EndWatch()
    private var channels: [ChannelFilter: ChannelSubscription] = [:]
    /// Whether the session is open: after DISCONNECT nothing is sent ([MQTT-3.14.4-2]).
    private(set) var isOpen = false
    private var isSavingPower = false
    /// Whether an earlier connection of the session may have left something in flight.
    private var mayHaveUnacknowledged = false
    /// Packets that are written and not flushed, and the deliveries at QoS 0 among them.
    private var output: (bytes: ByteBuffer?, unconfirmed: [Delivery]) = (nil, [])
    private var writeTimeout: DeadlineRegistration?
    private(set) var deadline: NIODeadline?

    init(_ courier: CourierState, _ loop: LoopState) {
        self.courier = courier
        self.loop = loop
    }

    func attach(_ connection: MQTTConnection, _ context: ChannelHandlerContext) {
        attached = (connection, context)
    }

    // MARK: - The session

    func open(_ terms: SessionTerms) {
        claimed = (terms.device, terms.fence)
        accepts.packetBytes = terms.maximumPacketSize
        isSavingPower = terms.isSavingPower
        window = DeliveryWindow(limit: terms.window)
        watch = EndWatch(terms.device, courier, window: &window)
        isOpen = true
        if terms.isResumed {
            mayHaveUnacknowledged = true
        } else {
            _ = courier.takeovers.takeUnacknowledged(of: terms.device)
        }
    }

    /// Flushes the last packets; nothing is sent after them.
    func end() {
        isOpen = false
        flush()
        endWriteTimeout()
    }

    /// Lets go of everything: the connection is gone.
    func close() {
        isOpen = false
        for subscription in channels.values { loop.broadcasts.remove(subscription) }
        channels = [:]
        endWriteTimeout()
        attached = nil
        output.bytes = nil
    }

    var unacknowledged: [UnacknowledgedNotification] { window.unacknowledged }

    /// Adds to a claim what its session record has to say of tokens and channels.
    func describe(_ claim: DeviceClaim) -> DeviceClaim {
        guard case .keep(var record) = claim.session else { return claim }
        if window.holdsToken { record.tokenKey = nil }
        if !channels.isEmpty {
            let acknowledged = channels.values.filter { $0.acknowledged > 0 }.map { ($0.filter, $0.acknowledged) }
            record.broadcasts = acknowledged.isEmpty ? nil : Dictionary(acknowledged) { first, _ in first }
        }
        var claim = claim
        claim.session = .keep(record)
        return claim
    }

    // MARK: - Messages

    /// Sends a message when its turn comes.
    func send(_ message: DeliveryWindow.Message) {
        window.enqueue(message)
        sendWaiting()
    }

    /// Keeps the packet identifiers of what the session's earlier connection had in flight.
    ///
    /// Called with the first delivery: after a takeover the older connection needs a moment to hand over what it had, and
    /// the first delivery has to be read from the store.
    func takeUnacknowledged() {
        guard mayHaveUnacknowledged else { return }
        mayHaveUnacknowledged = false
        window.reserve(courier.takeovers.takeUnacknowledged(of: claimed.device))
    }

    /// Sends the tokens of apps under the newest key.
    func renewTokens(of apps: [AppSubscription]) {
        for app in apps {
            guard let token = courier.services.token(for: Slot(device: claimed.device, app: app.number)) else {
                continue
            }
            window.enqueue(.token(app.number, token, qualityOfService: app.qualityOfService))
        }
        sendWaiting()
    }

    /// Drops the messages of apps that still wait.
    func drop(_ apps: [AppNumber]) {
        window.drop(Set(apps))
    }

    /// Whether more messages wait than one device may have waiting.
    var isQueueFull: Bool { window.queuedCount > courier.limits.configuration.queuedMessages }

    func acknowledged(_ packetIdentifier: UInt16, _ result: DeliveryResult) {
        guard let message = window.acknowledge(packetIdentifier) else { return }
        switch message {
        case .delivery(let delivery):
            if result == .acknowledged {
                courier.metrics.measure(delivery.envelope, acknowledged: courier.clock.now())
            }
            report(delivery, result)
        case .broadcast(let subscription):
            subscription.acknowledge()
            subscription.feed.count(result == .refused ? .refused : .acknowledged)
        case .token, .announcement: break
        }
        watch.acknowledged(message, &window)
        if window.queuedCount > 0 { sendWaiting() }
    }

    private func report(_ delivery: Delivery, _ result: DeliveryResult) {
        let slot = Slot(device: claimed.device, app: delivery.app)
        courier.services.postOffice.finished(slot, fence: claimed.fence, delivery: delivery.number, result: result)
    }

    /// Judges the end of the connection, before its deliveries go back to the post office.
    /// - Returns: The message that is withheld from now on, because the client cannot take it; nil mostly.
    func judge(_ end: PeerEnd) -> DeliveryWindow.Message? {
        let withheld = watch.withheld(after: end, of: claimed.device, window, courier)
        guard let (message, identifier) = withheld else { return nil }
        if let identifier { _ = window.acknowledge(identifier) }
        if case .delivery(let delivery) = message { report(delivery, .endsConnection) }
        if case .broadcast(let subscription) = message, identifier != nil { subscription.withhold() }
        return message
    }

    /// Sends the messages that wait, as far as the window and the socket allow.
    func sendWaiting() {
        guard isOpen, let context = attached?.context else { return }
        let limit = courier.limits.configuration.outboundBytes
        while isOpen, context.channel.isWritable, let message = window.next {
            switch message {
            case .delivery(let delivery): write(delivery)
            case .token(let app, let token, _): write(token, for: app)
            case .broadcast(let subscription): write(subscription)
            case .announcement: writeAnnouncement()
            }
            if (output.bytes?.readableBytes ?? 0) >= limit { flush() }
        }
    }

    private func write(_ delivery: Delivery) {
        let notification = delivery.envelope.notification
        let now = courier.clock.now()
        if notification.isExpired(at: now), !notification.isExpired(at: courier.clock.certainTime()) {
            // After a jump of the clock: without the connection it goes back to the store, which withholds it.
            isOpen = false
            attached?.context.close(promise: nil)
            return
        }
        guard !notification.isExpired(at: now), let topic = loop.topic(delivery.app, courier.services.registry) else {
            window.dropNext()
            return report(delivery, .expired)
        }
        let isV5 = accepts.version == .v5
        if isV5 { loop.properties.describe(notification, now: now) }
        let properties = isV5 ? loop.properties : nil
        let sized = MQTTOutgoingPublish(topic: topic, packetIdentifier: delivery.qualityOfService > 0 ? 1 : nil)
        guard
            accepts.packetBytes == .max
                || sized.size(properties, payloadBytes: notification.payload.count) <= accepts.packetBytes
        else {
            window.dropNext()
            return report(delivery, .tooLarge)
        }
        guard let outgoing = window.takeNext() else { return }
        let publish = MQTTOutgoingPublish(
            topic: topic,
            packetIdentifier: outgoing.packetIdentifier,
            isDuplicate: outgoing.isDuplicate
        )
        write { _ = publish.write(properties, payload: notification.payload, into: &$0) }
        watch.wrote(at: now)
        if outgoing.packetIdentifier == nil { output.unconfirmed.append(delivery) }
    }

    private func writeAnnouncement() {
        guard let text = courier.services.trust.announcement?.text else { return window.dropNext() }
        write(Array(text.utf8), to: .service)
    }

    private func write(_ token: DeviceToken, for app: AppNumber) {
        guard let topic = courier.services.registry.app(app)?.topic else { return window.dropNext() }
        write(Array(token.hex.utf8), to: .token(topic))
    }

    /// Writes the message whose turn it is, unless it is too long for the device.
    private func write(_ payload: [UInt8], to topic: CourierTopic) {
        guard let outgoing = window.takeNext() else { return }
        let publish = MQTTOutgoingPublish(topic: Array(topic.name.utf8), packetIdentifier: outgoing.packetIdentifier)
        let properties = accepts.version == .v5 ? MQTTPropertyBlock() : nil
        guard publish.size(properties, payloadBytes: payload.count) <= accepts.packetBytes else {
            if let identifier = outgoing.packetIdentifier { _ = window.acknowledge(identifier) }
            return
        }
        write { _ = publish.write(properties, payload: payload, into: &$0) }
    }

    // MARK: - Broadcasts

    func openChannel(
        _ filter: ChannelFilter,
        in environment: PushEnvironment,
        qualityOfService: UInt8,
        acknowledged: UInt64
    ) {
        if let known = channels[filter] {
            known.qualityOfService = qualityOfService
            return
        }
        // There is no feed if the channel was deleted since the session was stored: nothing is ever sent to it.
        let app = App(topic: filter.bundle, environment: environment)
        guard let feed = courier.services.channels.feed(filter.id, of: app) else { return }
        let subscription = ChannelSubscription(
            feed,
            filter: filter.name,
            qualityOfService: qualityOfService,
            acknowledged: max(isPossible(acknowledged) ? acknowledged : 0, watch.withheld(of: filter.id)),
            sender: self
        )
        // On the loop's list first, then the stored message: a broadcast in between comes twice, and its number tells.
        channels[filter] = subscription
        loop.broadcasts.add(subscription)
        guard let newest = courier.services.channels.newest(filter.id, of: app), subscription.accept(newest) else {
            return
        }
        send(waitingOf: subscription)
    }

    /// Whether a session can have had a broadcast of that number.
    ///
    /// It cannot where the clock was set back and the service started again. Kept, such a number would hold all broadcasts
    /// back until the clock has caught up.
    private func isPossible(_ number: UInt64) -> Bool {
        number < Broadcast.firstNumber(at: courier.clock.now() + .seconds(1))
    }

    func closeChannels(_ filters: [ChannelFilter]) {
        let closed = filters.compactMap { channels.removeValue(forKey: $0) }
        for subscription in closed { loop.broadcasts.remove(subscription) }
        if closed.contains(where: \.isQueued) { window.dropClosedChannels() }
    }

    /// Sends a channel's newest message as soon as the window, the socket and the device's power allow.
    func send(waitingOf subscription: ChannelSubscription) {
        guard isOpen, !subscription.isQueued, let waiting = subscription.waiting, isPermitted(waiting) else { return }
        subscription.isQueued = true
        window.enqueue(.broadcast(subscription))
        sendWaiting()
    }

    /// Notes whether the device saves power; broadcasts that waited for it go out when it no longer does.
    func setSavingPower(_ isSaving: Bool) {
        isSavingPower = isSaving
        if !isSaving { sendWaitingBroadcasts() }
    }

    /// Sends each channel's broadcast that waits for nothing any more.
    func sendWaitingBroadcasts() {
        for subscription in channels.values { send(waitingOf: subscription) }
    }

    /// Whether a broadcast may go out now, or be dropped: power and a jump of the clock keep it waiting.
    private func isPermitted(_ broadcast: Broadcast) -> Bool {
        guard !isSavingPower || broadcast.priority == .immediate else { return false }
        return !broadcast.isExpired(at: courier.clock.now()) || broadcast.isExpired(at: courier.clock.certainTime())
    }

    private func write(_ subscription: ChannelSubscription) {
        subscription.isQueued = false
        // Meanwhile a newer broadcast that has to wait can have replaced one that had not, or the clock have jumped.
        guard let waiting = subscription.waiting, isPermitted(waiting), let broadcast = subscription.takeWaiting()
        else {
            return window.dropNext()
        }
        let now = courier.clock.now()
        guard !broadcast.isExpired(at: now) else {
            window.dropNext()
            return subscription.feed.count(.expired)
        }
        let packets = loop.packets(of: broadcast, topic: subscription.feed.topic, now: now)
        guard packets.size(accepts.version, subscription.qualityOfService) <= accepts.packetBytes else {
            window.dropNext()
            return subscription.feed.count(.tooLarge)
        }
        guard let outgoing = window.takeNext() else { return }
        write { packets.write(accepts.version, packetIdentifier: outgoing.packetIdentifier, into: &$0) }
        subscription.sent(broadcast, isAcknowledged: outgoing.packetIdentifier != nil)
        watch.wrote(at: now, unconfirmed: outgoing.packetIdentifier == nil ? subscription : nil)
        if outgoing.packetIdentifier == nil { subscription.feed.count(.written) }
    }

    // MARK: - Packets and bytes

    /// Writes a packet; flushed at the end of the turn.
    func send(_ packet: MQTTPacket) {
        guard attached != nil else { return }
        var bytes = ByteBuffer()
        do {
            try MQTTPacketEncoder.encode(packet, version: accepts.version, into: &bytes)
            if bytes.readableBytes > accepts.packetBytes {
                // Text for people is left out at the limit ([MQTT-3.1.2-24], [MQTT-3.2.2-19]).
                bytes.clear()
                try MQTTPacketEncoder.encode(packet, version: accepts.version, withoutText: true, into: &bytes)
            }
        } catch {
            return courier.logger.error("a packet could not be written", metadata: ["error": "\(error)"])
        }
        guard bytes.readableBytes <= accepts.packetBytes else {
            // A device that cannot take the answer to its own packet cannot be served.
            isOpen = false
            attached?.context.close(promise: nil)
            return
        }
        write { $0.writeBuffer(&bytes) }
    }

    private func write(_ body: (inout ByteBuffer) -> Void) {
        guard let context = attached?.context else { return }
        // Taken out while it is written to, so that it is not copied.
        var buffer = output.bytes.take() ?? context.channel.allocator.buffer(capacity: 512)
        body(&buffer)
        output.bytes = buffer
    }

    /// Hands the written packets to TLS and the socket.
    func flush() {
        guard let context = attached?.context, let buffer = output.bytes.take() else { return }
        if output.unconfirmed.isEmpty {
            context.writeAndFlush(NIOAny(buffer), promise: nil)
        } else {
            // Nothing acknowledges QoS 0: what the socket has taken is delivered.
            let written = output.unconfirmed
            output.unconfirmed = []
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenSuccess { [self] in
                for delivery in written { report(delivery, .written) }
            }
            context.writeAndFlush(NIOAny(buffer), promise: promise)
        }
        if !context.channel.isWritable { startWriteTimeout(context) }
    }

    // MARK: - Write timeout

    /// Whether the device takes nothing of what is written to it, and has some time left to do so.
    var isWriteTimeoutRunning: Bool { writeTimeout != nil }

    private func startWriteTimeout(_ context: ChannelHandlerContext) {
        guard writeTimeout == nil else { return }
        deadline = context.eventLoop.now + TimeAmount(courier.limits.configuration.writeTimeout)
        writeTimeout = loop.wheel.add(self)
    }

    func endWriteTimeout() {
        writeTimeout?.cancel()
        writeTimeout = nil
        deadline = nil
    }

    func deadlinePassed() {
        deadline = nil
        attached?.connection.writeTimedOut()
    }
}
