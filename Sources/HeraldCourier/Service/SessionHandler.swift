import CoreMetrics
import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// One connection of a device, behind TLS: performs what its ``SessionMachine`` decides.
///
/// 1. Turns bytes into packets and packets into bytes; writes are gathered and flushed once per turn of the event loop.
/// 2. Sends deliveries as the ``DeliveryWindow`` and the device's socket allow, and reports how they ended.
/// 3. Stops reading from a device that does not take what is written to it, or asks for more than is under way.
/// 4. Watches the device's silence, and its taking nothing, without a timer of its own.
///
/// Idle memory is what counts here: buffers exist only while there is something in them.
final class SessionHandler: ChannelInboundHandler, DeadlineHolder {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let clerk: SessionClerk
    let loop: CourierLoop.Desk
    private let inbox: LoopInbox<LinkOrder>
    private let identity: DeviceIdentity
    private var machine: SessionMachine
    private var decoder: MQTTPacketDecoder
    var window = DeliveryWindow(limit: 1)
    /// The channels that the device is subscribed to.
    var channels: [ChannelSubscription] = []
    var savesPower = false
    private(set) var context: ChannelHandlerContext?
    private var link: CourierLink?
    private(set) var device = DeviceNumber(0)
    private(set) var fence: UInt64 = 0
    /// Bytes of the largest packet that the device accepts.
    private(set) var maximumPacketSize = Int.max
    /// Written in this turn of the loop, and not flushed.
    var output: ByteBuffer?
    /// Deliveries at QoS 0 in `output`.
    var unconfirmed: [Delivery] = []
    private var lastPacket = NIODeadline.now()
    /// Until the device is let in, how long it may take to say who it is.
    private var longestSilence: TimeAmount
    private var silence: DeadlinePlace?
    private var stall: DeadlinePlace?
    private var isReading = true
    /// Whether an earlier connection of the session may have left something in flight.
    private var mayHaveRemnants = false

    init(identity: DeviceIdentity, environment: PushEnvironment, clerk: SessionClerk, loop: CourierLoop) {
        self.identity = identity
        self.clerk = clerk
        self.loop = loop.desk
        inbox = loop.inbox
        machine = SessionMachine(device: identity.id, environment: environment, limits: clerk.limits)
        decoder = MQTTPacketDecoder(awaitingConnectUpTo: clerk.limits.configuration.maximumConnectBytes)
        longestSilence = TimeAmount(clerk.limits.configuration.connectTimeout)
    }

    var environment: PushEnvironment { machine.environment }

    /// Whether anything may still be said to the device.
    var isOpen: Bool { machine.isOpen }

    /// The version that is spoken; before CONNECT is accepted, the one in which it can be refused.
    var version: MQTTVersion { decoder.version ?? decoder.refusalVersion ?? .v5 }

    // The channel.

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let link = CourierLink(identity: identity, inbox: inbox, handler: bound)
        self.link = link
        clerk.table.add(link)
        clerk.metrics.connections.increment()
        lastPacket = context.eventLoop.now
        silence = loop.wheel.add(self)
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
            endStall()
            // What was left unread was left by the server, not by the device.
            lastPacket = context.eventLoop.now
            sendWaiting()
            readPackets(context)
            flush()
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        perform(machine.disconnected(now: clerk.clock.now()))
        closeChannels()
        endStall()
        silence?.leave()
        silence = nil
        if let link { clerk.table.remove(link) }
        // The link holds the handler: neither would ever go.
        link = nil
        self.context = nil
        output = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The peer is gone, or TLS is broken: nothing can be said any more.
        clerk.logger.debug(
            "connection of a device failed",
            metadata: ["device": "\(identity.id)", "error": "\(TLSFault.words(for: error))"]
        )
        context.closeWithoutFarewell()
    }

    // Packets.

    private func readPackets(_ context: ChannelHandlerContext) {
        var hasRead = false
        while context.channel.isWritable, !machine.isClosed {
            if machine.isOpen, let identifier = decoder.nextAcknowledgement() {
                hasRead = true
                acknowledged(identifier, .acknowledged)
                continue
            }
            guard machine.canReceive else { break }
            do {
                guard let packet = try decoder.next() else { break }
                hasRead = true
                received(packet)
            } catch {
                perform(machine.failed(error, refusalVersion: decoder.refusalVersion))
            }
        }
        if hasRead { lastPacket = context.eventLoop.now }
        adjustReading(context)
    }

    private func received(_ packet: MQTTPacket) {
        if case .puback(let answer) = packet, machine.isOpen {
            // A refusal counts as an acknowledgement: nothing is sent again ([MQTT-4.4.0-2]).
            return acknowledged(answer.packetIdentifier, answer.reasonCode.isFailure ? .refused : .acknowledged)
        }
        if machine.isConnecting { decoder.maximumPacketSize = clerk.limits.configuration.maximumPacketBytes }
        if case .connect(let connect) = packet, machine.isConnecting, let maximum = connect.properties.maximumPacketSize
        {
            maximumPacketSize = Int(maximum)
        }
        perform(machine.received(packet))
    }

    /// Reads on, or stops reading while there is no place for more.
    private func adjustReading(_ context: ChannelHandlerContext) {
        let hasPlace = machine.canReceive && context.channel.isWritable
        let reads = machine.isClosed || hasPlace || decoder.pendingBytes < Self.bytesReadAhead
        guard reads != isReading else { return }
        isReading = reads
        // Synchronous on the loop; fails only on a channel that is closed.
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    /// Bytes that may wait unread before the socket is left alone: most pauses are shorter than filling them takes.
    private static let bytesReadAhead = 4096

    // Orders of the rest of the service, left for this loop.

    func carryOut(_ content: LinkOrder.Content) {
        switch content {
        case .deliver(let delivery):
            guard machine.isOpen else { return }
            takeRemnants()
            window.enqueue(.delivery(delivery))
            sendWaiting()
        case .dismiss(let reason):
            if reason == .takenOver, machine.keepsSession { clerk.table.remember(window.remnants, of: device) }
            perform(machine.dismissed(reason))
        case .renewTokens:
            guard machine.isOpen else { return }
            takeRemnants()
            renewTokens()
        case .complete(let result):
            let wasOpen = machine.isOpen
            perform(machine.completed(result, now: clerk.clock.now()))
            // The key may have changed while the device was being let in.
            if !wasOpen, machine.isOpen { renewTokens() }
            if let context { readPackets(context) }
        }
    }

    /// Sends the device its tokens under the newest key, if it was sent those of another.
    private func renewTokens() {
        let apps = machine.renewTokens(clerk.office.tokenKey)
        guard !apps.isEmpty else { return }
        // Those of an older key that still wait would only be followed by these.
        window.dropTokens()
        for app in apps {
            guard let token = clerk.token(for: Slot(device: device, app: app.number)) else { continue }
            window.enqueue(.token(app.number, token, qualityOfService: app.qualityOfService))
        }
        sendWaiting()
    }

    private func acknowledged(_ packetIdentifier: UInt16, _ result: DeliveryResult) {
        guard let message = window.acknowledge(packetIdentifier) else { return }
        switch message {
        case .delivery(let delivery): report(delivery, result)
        case .broadcast(let subscription):
            subscription.haveAcknowledgement()
            subscription.feed.count(result == .refused ? .refused : .acknowledged)
        case .token: break
        }
        if window.queuedCount > 0 { sendWaiting() }
    }

    func report(_ delivery: Delivery, _ result: DeliveryResult) {
        let slot = Slot(device: device, app: delivery.app)
        clerk.office.finished(slot, fence: fence, delivery: delivery.number, result: result)
    }

    // Actions.

    private func perform(_ actions: [SessionAction]) {
        // Apps that are wanted one after the other are wanted at once, and read in one go.
        var wanted: [WantedApp] = []
        for action in actions {
            if case .open(let app, let qualityOfService) = action {
                wanted.append(WantedApp(app, qualityOfService: qualityOfService))
                continue
            }
            open(&wanted)
            perform(action)
        }
        open(&wanted)
    }

    private func open(_ wanted: inout [WantedApp]) {
        guard !wanted.isEmpty else { return }
        clerk.office.open(wanted, on: device, fence: fence)
        wanted = []
    }

    private func perform(_ action: SessionAction) {
        switch action {
        case .request(let request):
            guard let link else { return }
            if case .arrive = request {
                clerk.perform(
                    request,
                    for: SessionClerk.Client(link: link, environment: machine.environment, device: nil)
                )
            } else {
                let device = machine.claim?.device
                clerk.perform(
                    request,
                    for: SessionClerk.Client(link: link, environment: machine.environment, device: device)
                )
            }
        case .attach(let terms): attach(terms)
        case .send(let packet): send(packet)
        case .sendToken(let app, let token, let qualityOfService):
            window.enqueue(.token(app, token, qualityOfService: qualityOfService))
            sendWaiting()
        case .open(let app, let qualityOfService):
            clerk.office.open(
                [WantedApp(app, qualityOfService: qualityOfService)],
                on: device,
                fence: fence
            )
        case .close(let app):
            clerk.office.close(Slot(device: device, app: app), fence: fence)
        case .forget(let app):
            clerk.office.close(Slot(device: device, app: app), fence: fence)
            window.drop(app)
        case .openChannel(let filter, let qualityOfService, let acknowledged):
            openChannel(filter, qualityOfService: qualityOfService, acknowledged: acknowledged)
        case .closeChannel(let filter): closeChannel(filter)
        case .setSavingPower(let isSaving):
            setSavingPower(isSaving)
            clerk.office.setSavingPower(isSaving, device: device, fence: fence)
        case .end: end()
        case .depart(var departure):
            guard let link else { return }
            if case .keep(var record) = departure.record, window.holdsToken {
                record.tokenKey = nil
                departure.record = .keep(record)
            }
            clerk.depart(note(in: departure), link, remnants: window.remnants)
        case .log(let note): log(note)
        }
    }

    private func attach(_ terms: SessionTerms) {
        guard let link else { return }
        device = terms.device
        fence = terms.fence
        maximumPacketSize = terms.maximumPacketSize
        savesPower = terms.isSavingPower
        longestSilence = .milliseconds(Int64(terms.longestSilence * 1000))
        window = DeliveryWindow(limit: terms.window)
        if terms.isResumed {
            mayHaveRemnants = true
        } else {
            _ = clerk.table.takeRemnants(of: terms.device)
        }
        clerk.office.attach(terms.device, link: link, isSavingPower: terms.isSavingPower, fence: terms.fence)
        lastPacket = context?.eventLoop.now ?? .now()
        silence?.leave()
        silence = loop.wheel.add(self)
    }

    /// What the session's earlier connection had in flight keeps its packet identifiers.
    ///
    /// Asked for with the first delivery: after a takeover the older connection needs a moment to say what it had, and
    /// the first delivery has to be read from the store.
    private func takeRemnants() {
        guard mayHaveRemnants else { return }
        mayHaveRemnants = false
        window.reserve(clerk.table.takeRemnants(of: device))
    }

    private func end() {
        flush()
        endStall()
        // Said before the peer can see the end: who saw it may count on the device being away.
        perform(machine.disconnected(now: clerk.clock.now()))
        // TLS says good-bye and waits some seconds for the peer's; then the socket is closed in any case.
        if let context { TLSFarewell.say(context, wheel: loop.wheel) }
    }

    private func log(_ note: SessionNote) {
        clerk.metrics.refusals.increment()
        let metadata: Logger.Metadata = ["device": "\(identity.id)", "reason": "\(note.rawValue)"]
        switch note {
        case .tooManyTakeovers, .wrongClientIdentifier, .foreignToken:
            clerk.logger.notice("connection of a device refused", metadata: metadata)
        case .unavailable, .malformed, .protocolError, .silent:
            clerk.logger.debug("connection of a device ended", metadata: metadata)
        }
    }

    // Deadlines.

    var deadline: NIODeadline? {
        machine.isClosed ? nil : lastPacket + longestSilence
    }

    func deadlinePassed() {
        if machine.isConnecting { return perform(machine.fellSilent()) }
        // A device that may not speak, because it takes nothing, has a deadline of its own.
        guard stall == nil, machine.isOpen else {
            lastPacket = context?.eventLoop.now ?? lastPacket
            return
        }
        perform(machine.fellSilent())
        flush()
    }

    /// Notes that the device takes nothing.
    func noteStall(_ context: ChannelHandlerContext) {
        guard stall == nil else { return }
        let timeout = TimeAmount(clerk.limits.configuration.writeTimeout)
        stall = loop.wheel.add(
            PassingDeadline(context.eventLoop.now + timeout) { self.perform(self.machine.stalled()) }
        )
    }

    private func endStall() {
        stall?.leave()
        stall = nil
    }
}

/// A deadline that exists for a while beside a connection's own.
private final class PassingDeadline: DeadlineHolder {
    private(set) var deadline: NIODeadline?
    private let action: () -> Void

    init(_ deadline: NIODeadline, _ action: @escaping () -> Void) {
        self.deadline = deadline
        self.action = action
    }

    func deadlinePassed() {
        deadline = nil
        action()
    }
}
