import CoreMetrics
import Glibc
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// One connection of a device, behind TLS: performs the decisions of its ``MQTTConnectionMachine``.
///
/// 1. Turns bytes into packets, and gives them to the machine.
/// 2. Passes deliveries, tokens and broadcasts on to its ``MessageSender``.
/// 3. Stops reading from a device that does not take what is written to it, or has too many requests under way.
/// 4. Watches the keep-alive, without a timer of its own.
///
/// Memory of idle connections counts here: buffers exist only while they hold something.
final class MQTTConnection: ChannelInboundHandler, DeadlineHolder {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let courier: CourierState
    private let loop: CourierLoop
    private let identity: DeviceIdentity
    private var machine: MQTTConnectionMachine
    private var decoder: MQTTPacketDecoder
    private let sender: MessageSender
    private var context: ChannelHandlerContext?
    private var link: MQTTConnectionLink?
    private var keepAlive: KeepAlive
    private var isReading = true
    /// The end of the connection; nil while it is open, and if the service decided on it.
    private var peerEnd: PeerEnd?
    /// The listener's entry; nil once the device is admitted.
    private var unknown: AdmittedConnection?

    init(
        identity: DeviceIdentity,
        environment: PushEnvironment,
        courier: CourierState,
        loop: CourierLoop,
        unknown: AdmittedConnection? = nil
    ) {
        let configuration = courier.limits.configuration
        self.identity = identity
        self.courier = courier
        self.loop = loop
        machine = MQTTConnectionMachine(device: identity.id, environment: environment, limits: courier.limits)
        decoder = MQTTPacketDecoder(awaitingConnectUpTo: configuration.maximumConnectBytes)
        keepAlive = KeepAlive(connectTimeout: configuration.connectTimeout, now: .now())
        sender = MessageSender(courier, loop.state)
        self.unknown = unknown
    }

    // MARK: - Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        sender.attach(self, context)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let link = MQTTConnectionLink(
            identity: identity,
            address: context.channel.clientAddress,
            connected: courier.clock.now(),
            inbox: loop.inbox,
            connection: bound
        )
        self.link = link
        courier.connections.add(link)
        let isNew = courier.services.registry.number(of: identity.id) == nil
        courier.sightings.note(link.sighting(at: link.connected), isNew: isNew)
        courier.metrics.connections.increment()
        keepAlive.heard(at: context.eventLoop.now)
        keepAlive.registration = loop.state.wheel.add(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !machine.isClosed else { return }
        decoder.append(unwrapInboundIn(data))
        readPackets(context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            sender.endWriteTimeout()
            // The server left these bytes unread, not the device.
            keepAlive.heard(at: context.eventLoop.now)
            sender.sendWaiting()
            readPackets(context)
            flush()
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        // A sender that has ended already closed the connection itself.
        if !machine.isClosed, sender.isOpen { peerEnd = .closed }
        perform(machine.disconnected(now: courier.clock.now()))
        sender.close()
        keepAlive.registration?.cancel()
        keepAlive.registration = nil
        if let link {
            link.noteGone()
            courier.connections.remove(link)
            courier.sightings.note(link.sighting(at: courier.clock.now()))
        }
        // The link holds the connection: neither would ever go.
        link = nil
        self.context = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The peer is gone, or TLS is broken: nothing more can be sent.
        courier.logger.debug(
            "connection of a device failed",
            metadata: ["device": "\(identity.id)", "error": "\(TLSFault.words(for: error))"]
        )
        context.closeTransport()
    }

    // MARK: - Packets

    private func readPackets(_ context: ChannelHandlerContext) {
        var hasRead = false
        while context.channel.isWritable, !machine.isClosed {
            if machine.isOpen, let identifier = decoder.nextAcknowledgement() {
                hasRead = true
                sender.acknowledged(identifier, .acknowledged)
                continue
            }
            guard machine.canReceive else { break }
            do {
                guard let packet = try decoder.next() else { break }
                hasRead = true
                received(packet)
            } catch {
                if let version = decoder.version ?? decoder.refusalVersion { sender.accepts.version = version }
                perform(machine.failed(error, refusalVersion: decoder.refusalVersion))
            }
        }
        if hasRead { keepAlive.heard(at: context.eventLoop.now) }
        adjustReading(context)
    }

    private func received(_ packet: MQTTPacket) {
        if case .puback(let answer) = packet, machine.isOpen {
            // A refusal counts as an acknowledgement: nothing is sent again ([MQTT-4.4.0-2]).
            return sender.acknowledged(
                answer.packetIdentifier,
                answer.reasonCode.isFailure ? .refused : .acknowledged
            )
        }
        if machine.isConnecting {
            decoder.maximumPacketSize = courier.limits.configuration.maximumPacketBytes
            if case .connect(let connect) = packet {
                sender.accepts.version = connect.version
                if let maximum = connect.properties.maximumPacketSize { sender.accepts.packetBytes = Int(maximum) }
            }
        }
        if case .disconnect(let disconnect) = packet { peerEnd = .disconnect(disconnect.reasonCode) }
        perform(machine.received(packet))
    }

    /// Reads on, or stops reading while there is no room for more.
    private func adjustReading(_ context: ChannelHandlerContext) {
        let hasRoom = machine.canReceive && context.channel.isWritable
        let reads = machine.isClosed || hasRoom || decoder.pendingBytes < Self.bytesReadAhead
        guard reads != isReading else { return }
        isReading = reads
        // Synchronous on the loop; fails only on a channel that is closed.
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    /// Bytes that may wait unread before reading stops: most pauses are shorter than filling them takes.
    private static let bytesReadAhead = 4096

    // MARK: - Messages of other threads

    /// Handles a message that came through the connection's link.
    func handle(_ content: LinkMessage.Content, through link: MQTTConnectionLink) {
        // A connection that is gone gives back the claim that it is granted now.
        let isGone = self.link == nil
        if isGone { self.link = link }
        defer { if isGone { self.link = nil } }
        switch content {
        case .deliver(let delivery):
            guard machine.isOpen else { return }
            sender.takeUnacknowledged()
            sender.send(.delivery(delivery))
        case .dismiss(let reason):
            if reason == .takenOver, machine.keepsSession {
                courier.takeovers.remember(sender.unacknowledged, of: sender.claimed.device)
            }
            perform(machine.dismissed(reason))
        case .renewTokens:
            guard machine.isOpen else { return }
            sender.takeUnacknowledged()
            renewTokens()
        case .announce: perform(machine.announcement())
        case .releaseWithheld:
            sender.sendWaitingBroadcasts()
        case .ask(let done): tellSilence(done)
        case .complete(let answer):
            let wasOpen = machine.isOpen
            perform(machine.completed(answer, now: courier.clock.now()))
            // The key may have changed while the device was being admitted.
            if !wasOpen, machine.isOpen { renewTokens() }
            if let context { readPackets(context) }
        }
    }

    /// Tells the time since the client's last bytes came; nil if it is gone, or has waited longer than clients do.
    ///
    /// The kernel knows both also after the process stood still, with bytes and the end of the connection in its queues.
    private func tellSilence(_ done: @escaping @Sendable (Duration?) -> Void) {
        guard let context, !machine.isClosed else { return done(nil) }
        let patience = courier.limits.configuration.connectPatience
        let waited = Duration.nanoseconds((context.eventLoop.now - keepAlive.lastPacket).nanoseconds)
        guard let socket = context.channel as? any SocketOptionProvider else {
            return done(waited < patience ? waited : nil)
        }
        socket.getTCPInfo().whenComplete { info in
            guard case .success(let info) = info, Int(info.tcpi_state) == TCP_ESTABLISHED else { return done(nil) }
            let silence = Duration.milliseconds(info.tcpi_last_data_recv)
            done(silence < patience ? silence : nil)
        }
    }

    private func renewTokens() {
        let apps = machine.renewTokens(courier.services.tokens.newestKey)
        if !apps.isEmpty { sender.renewTokens(of: apps) }
    }

    /// Ends a turn of the event loop: flushes, or ends the connection if too much waits.
    func flush() {
        if sender.isQueueFull { perform(machine.queueFilled()) }
        sender.flush()
    }

    // MARK: - Actions of the machine

    private func perform(_ actions: [ConnectionAction]) {
        // Apps that are wanted one after the other are wanted at once, and read in one go.
        var wanted: [AppSubscription] = []
        for action in actions {
            if case .open(let app, let qualityOfService) = action {
                wanted.append(AppSubscription(app, qualityOfService: qualityOfService))
                continue
            }
            open(&wanted)
            perform(action)
        }
        open(&wanted)
    }

    private func open(_ wanted: inout [AppSubscription]) {
        guard !wanted.isEmpty else { return }
        courier.services.postOffice.open(wanted, on: sender.claimed.device, fence: sender.claimed.fence)
        wanted = []
    }

    private func perform(_ action: ConnectionAction) {
        let postOffice = courier.services.postOffice
        switch action {
        case .request(let request):
            guard let link else { return }
            let client = RegistryRequests.Client(
                link: link,
                environment: machine.environment,
                device: machine.claim?.device,
                fence: machine.claim?.fence ?? 0
            )
            courier.requests.perform(request, for: client)
        case .attach(let terms): attach(terms)
        case .send(let packet): sender.send(packet)
        case .sendToken(let app, let token, let qualityOfService):
            sender.send(.token(app, token, qualityOfService: qualityOfService))
        case .announce(let qualityOfService, let version):
            guard let newest = courier.services.trust.announcement, newest.content.version > version else { return }
            sender.send(.announcement(qualityOfService: qualityOfService))
        case .noteAnnouncement(let version):
            guard let link else { return }
            courier.sightings.note(announcement: version, of: link.sighting(at: courier.clock.now()))
        case .open(let app, let qualityOfService):
            var wanted = [AppSubscription(app, qualityOfService: qualityOfService)]
            open(&wanted)
        case .close(let app): close(app)
        case .withhold(let app): close(app, awaitsToken: true)
        case .remove(let apps):
            for app in apps { close(app) }
            sender.drop(apps)
        case .openChannel(let filter, let qualityOfService, let acknowledged):
            sender.openChannel(
                filter,
                in: machine.environment,
                qualityOfService: qualityOfService,
                acknowledged: acknowledged
            )
        case .closeChannels(let filters): sender.closeChannels(filters)
        case .setSavingPower(let isSaving):
            sender.setSavingPower(isSaving)
            postOffice.setSavingPower(isSaving, device: sender.claimed.device, fence: sender.claimed.fence)
        case .end: end()
        case .release(let claim):
            guard let link else { return }
            if let peerEnd, let message = sender.judge(peerEnd) { courier.log(message, withheldFrom: identity.id) }
            courier.requests.release(sender.describe(claim), link, unacknowledged: sender.unacknowledged)
        case .log(let fault): log(fault)
        case .logRefusedTopic(let topic):
            courier.log(topic, of: identity.id, now: context?.eventLoop.now ?? .now())
        case .reportMissingTokens(let apps):
            courier.metrics.tokensMissing.increment()
            courier.logger.notice(
                "notifications of a device wait: it has not presented the tokens of its apps",
                metadata: ["device": "\(identity.id)", "apps": "\(apps)"]
            )
        }
    }

    private func close(_ app: AppNumber, awaitsToken: Bool = false) {
        let slot = Slot(device: sender.claimed.device, app: app)
        courier.services.postOffice.close(slot, fence: sender.claimed.fence, awaitsToken: awaitsToken)
    }

    private func attach(_ terms: SessionTerms) {
        guard let link else { return }
        unknown?.becameKnown()
        unknown = nil
        sender.open(terms)
        courier.services.postOffice.attach(
            terms.device,
            link: link,
            isSavingPower: terms.isSavingPower,
            fence: terms.fence
        )
        keepAlive.begin(terms, at: context?.eventLoop.now ?? .now())
        keepAlive.registration?.cancel()
        keepAlive.registration = loop.state.wheel.add(self)
    }

    private func end() {
        sender.end()
        // Before the peer can see the end: a peer that saw it may count on the device being away.
        perform(machine.disconnected(now: courier.clock.now()))
        // TLS sends its close_notify and waits some seconds for the peer's; then the socket is closed in any case.
        if let context { TLSShutdown.begin(context, wheel: loop.state.wheel) }
    }

    private func log(_ fault: ConnectionFault) {
        courier.metrics.refusals.increment()
        if fault == .queueFull { courier.metrics.fullQueues.increment() }
        let metadata: Logger.Metadata = ["device": "\(identity.id)", "reason": "\(fault.rawValue)"]
        switch fault {
        case .tooManyTakeovers, .wrongClientIdentifier, .foreignToken, .queueFull:
            courier.logger.notice("connection of a device refused", metadata: metadata)
        case .unavailable, .busy, .malformed, .protocolError, .keepAliveTimeout:
            courier.logger.debug("connection of a device ended", metadata: metadata)
        }
    }

    // MARK: - Deadlines

    var deadline: NIODeadline? { machine.isClosed ? nil : keepAlive.deadline }

    func deadlinePassed() {
        if keepAlive.endTokenGrace() {
            perform(machine.tokenGraceEnded())
            return flush()
        }
        if machine.isConnecting { return perform(machine.keepAliveTimedOut()) }
        // A device from which nothing is read, because it takes nothing, has the write timeout instead.
        guard !sender.isWriteTimeoutRunning, machine.isOpen else {
            if let context { keepAlive.heard(at: context.eventLoop.now) }
            return
        }
        peerEnd = .timeout
        perform(machine.keepAliveTimedOut())
        flush()
    }

    func writeTimedOut() {
        peerEnd = .timeout
        perform(machine.writeTimedOut())
    }
}
