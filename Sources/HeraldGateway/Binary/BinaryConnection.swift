import CoreMetrics
import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore
import NIOSSL

/// One connection of a provider at the port of the binary interface: the channel handler behind TLS.
///
/// It performs; what is decided is decided in ``BinaryIntake`` (notifications) and ``BinaryWindow`` (which of them the one
/// answer is about).
/// 1. Looks at the first byte, and makes way for HTTP/2 where it is that.
/// 2. Reads notifications and takes them to the post office, as many at a time as the window has room for; meanwhile
///    nothing is read from the client.
/// 3. Once one is refused, and everything before it is settled: writes the error response, closes its side, and reads and
///    drops for a while what the client still sends, so that no reset overtakes the response.
///
/// It stays on its event loop; only its ``ProviderLoop`` is known to others.
final class BinaryConnection: ChannelDuplexHandler, RemovableChannelHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        /// Nothing has come yet.
        case opening
        case serving
        /// Nothing more is taken; what was taken is waited for until then.
        case finishing(until: NIODeadline)
        /// The last word is out; what comes is dropped.
        case draining(until: NIODeadline)
        case closed
    }

    private let service: BinaryService
    private var intake: BinaryIntake
    private var rulesGeneration: UInt64
    private let decoder: BinaryFrameDecoder
    private let loop: ProviderLoop<BinaryConnection>
    private let peer: HandshakePeer
    private let began: NIODeadline
    private var standing: BinaryStanding?
    /// Whether it showed a certificate that is not good here.
    private let isUnwelcome: Bool
    private var ids = IdentifierSource()

    private var phase = Phase.opening
    private var window: BinaryWindow
    private var input = ByteBuffer()
    private var lastRead: NIODeadline
    /// Since when a notification has begun and not ended.
    private var partialSince: NIODeadline?
    private var drainedBytes = 0
    private var isStopping = false
    /// Whether the client has said that nothing more comes.
    private var isInputOver = false
    private var context: ChannelHandlerContext?
    private var membership: (number: UInt64, desk: any ReceiptDesk)?
    private var isReadHeld = false
    private var isTouched = false
    private(set) var deadline: NIODeadline?

    /// Begins with a peer whose handshake is over; `now` is by the event loop's clock.
    init(service: BinaryService, loop: ProviderLoop<BinaryConnection>, peer: HandshakePeer, now: NIODeadline) {
        self.service = service
        self.loop = loop
        self.peer = peer
        let configuration = service.binary
        rulesGeneration = service.gateway.rules.generation
        intake = service.intake
        decoder = BinaryFrameDecoder(payloadBytes: configuration.payloadBytes, frameBytes: configuration.frameBytes)
        window = BinaryWindow(limit: configuration.notificationsInHand)
        began = now
        lastRead = now
        switch service.identify(peer, door: configuration.environment) {
        case .stranger:
            isUnwelcome = false
        case .provider(let identity, let environment):
            standing = BinaryStanding(identity, environment)
            isUnwelcome = false
        case .unwelcome:
            isUnwelcome = true
        }
    }

    // What the channel says.

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        membership = loop.add(self)
        service.metrics.connections.increment()
        if isUnwelcome { end(nil, context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        lastRead = context.eventLoop.now
        switch phase {
        case .opening:
            if bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) == BinaryService.prefaceByte {
                return makeWay(context, bytes)
            }
            guard standing != nil else { return end(nil, context) }
            phase = .serving
            input = bytes
            serve(context)
        case .serving:
            if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
            serve(context)
        case .draining:
            drainedBytes += bytes.readableBytes
            if drainedBytes > service.binary.drainBytes { close(context) }
        case .finishing, .closed:
            break
        }
    }

    func read(context: ChannelHandlerContext) {
        if mayRead { context.read() } else { isReadHeld = true }
    }

    /// The client has closed its side, by TLS or by TCP alone: what it sent before stands, and it may wait for an answer.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        isInputOver = true
        switch phase {
        case .opening: end(nil, context)
        case .serving: serve(context)
        case .draining: close(context)
        case .finishing, .closed: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Many clients end TCP without ending TLS; the event follows.
        if case NIOSSLError.uncleanShutdown = error { return }
        service.logger.debug("binary connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        close(context)
    }

    // What the post office says.

    func settled(_ number: UInt64, _ outcome: ReceiptOutcome) {
        switch outcome {
        case .accepted:
            if window.settle(number) { service.metrics.accepted.increment() }
        case .refused(let rejection):
            if window.settle(number, refusedWith: rejection.binaryStatus) {
                service.metrics.count(rejection.binaryStatus)
            }
        }
    }

    func noteTouched() -> Bool {
        defer { isTouched = true }
        return !isTouched
    }

    func flushTouched() {
        isTouched = false
        guard let context else { return }
        serve(context)
    }

    // What the gateway says.

    /// The service stops.
    func stop() {
        guard let context else { return }
        isStopping = true
        switch phase {
        case .opening: end(nil, context)
        case .serving: finish(context)
        case .draining: phase = .draining(until: context.eventLoop.now + TimeAmount(service.binary.stopDrain))
        case .finishing, .closed: break
        }
    }

    /// The service has stopped.
    func cutOff() {
        if let context { close(context) }
    }

    /// Looks again whether the connection's certificate is good: the revocation list has changed, or time has passed.
    func reviewCertificate() {
        guard let context, let identity = standing?.certificate,
            !service.admission.isStillGood(identity, at: service.clock.now())
        else { return }
        switch phase {
        case .opening: end(nil, context)
        case .serving, .finishing: farewell(context)
        case .draining, .closed: break
        }
    }

    // Notifications.

    private func serve(_ context: ChannelHandlerContext) {
        if case .serving = phase {
            takeAll(context)
            if isInputOver, window.hasRoom { return finish(context) }
        }
        conclude(context)
        readOn(context)
    }

    private func takeAll(_ context: ChannelHandlerContext) {
        guard input.readableBytes > 0, window.hasRoom else { return }
        let now = service.clock.now()
        if service.gateway.rules.isNewer(than: &rulesGeneration) { intake = service.intake }
        standing?.refresh(intake.admission)
        while window.hasRoom {
            guard let frame = decoder.next(&input) else {
                if input.readableBytes > 0, partialSince == nil { partialSince = context.eventLoop.now }
                break
            }
            partialSince = nil
            switch frame {
            case .notification(let notification):
                take(notification, now)
            case .fault(let fault):
                refuse(BinaryWindow.Origin(identifier: fault.identifier, isAnswered: fault.isAnswered), fault.status)
            }
        }
        // What is left of a burst is moved to the front, and the memory of a large one is given back.
        if input.readableBytes == 0 {
            input = ByteBuffer()
            partialSince = nil
        } else {
            input.discardReadBytes()
        }
    }

    private func take(_ request: BinaryNotification, _ now: WallTime) {
        guard let standing, let desk = membership?.desk else { return }
        let origin = BinaryWindow.Origin(identifier: request.identifier, isAnswered: request.form != .simple)
        switch intake.decide(request, standing, ids: &ids, now: now) {
        case .refused(let refusal):
            service.logger.debug("notification refused", metadata: ["reason": "\(refusal.why)"])
            refuse(origin, refusal.rejection.binaryStatus)
        case .notification(let notification, let generation):
            post(notification, origin, desk) { service.letterBox.post($0, generation: generation) }
        case .unreadable(let notification, let generation):
            post(notification, origin, desk) {
                service.letterBox.discard($0, generation: generation, as: .discardedUndeliverable)
            }
        }
    }

    private func post(
        _ notification: Notification,
        _ origin: BinaryWindow.Origin,
        _ desk: any ReceiptDesk,
        _ post: (Letter) -> PostDecision
    ) {
        let number = window.nextNumber
        switch post(Letter(notification, receipt: Receipt(desk: desk, number: number))) {
        case .pending:
            window.open(origin)
        case .accepted:
            window.accept(origin)
            service.metrics.accepted.increment()
        case .refused(let rejection, _):
            refuse(origin, rejection.binaryStatus)
        }
    }

    private func refuse(_ origin: BinaryWindow.Origin, _ status: BinaryStatus) {
        window.refuse(origin, status)
        service.metrics.count(status)
    }

    // Reading, and the end.

    private var mayRead: Bool {
        switch phase {
        case .opening, .draining, .closed: true
        case .serving: window.hasRoom
        case .finishing: false
        }
    }

    private func readOn(_ context: ChannelHandlerContext) {
        guard isReadHeld, mayRead else { return }
        isReadHeld = false
        context.read()
    }

    /// Takes nothing more, and ends once what was taken is settled.
    private func finish(_ context: ChannelHandlerContext) {
        phase = .finishing(until: context.eventLoop.now + TimeAmount(service.binary.shutdown))
        conclude(context)
    }

    /// Says the last word, if it is time.
    private func conclude(_ context: ChannelHandlerContext) {
        if case .serving = phase, window.isBroken {
            phase = .finishing(until: context.eventLoop.now + TimeAmount(service.binary.shutdown))
        }
        guard case .finishing = phase else { return }
        if let failure = window.failure {
            let response = BinaryErrorResponse(failure.status, identifier: failure.origin.identifier ?? 0)
            end(failure.origin.isAnswered ? response : nil, context)
        } else if window.count == 0 {
            if isInputOver { end(nil, context) } else { farewell(context) }
        }
    }

    /// Ends whatever is open still.
    private func farewell(_ context: ChannelHandlerContext) {
        guard let (status, identifier) = window.farewell else { return end(nil, context) }
        service.metrics.count(status)
        end(BinaryErrorResponse(status, identifier: identifier), context)
    }

    private func end(_ response: BinaryErrorResponse?, _ context: ChannelHandlerContext) {
        let patience = isStopping ? service.binary.stopDrain : service.binary.drainTimeout
        phase = .draining(until: context.eventLoop.now + TimeAmount(patience))
        input = ByteBuffer()
        partialSince = nil
        if let response {
            var buffer = context.channel.allocator.buffer(capacity: BinaryErrorResponse.byteCount)
            buffer.writeErrorResponse(response)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
        context.close(mode: .output, promise: nil)
        if isInputOver { close(context) } else { readOn(context) }
    }

    private func close(_ context: ChannelHandlerContext) {
        if case .closed = phase { return }
        phase = .closed
        deadline = nil
        TransportEnd.close(context)
    }

    private func makeWay(_ context: ChannelHandlerContext, _ bytes: ByteBuffer) {
        do {
            try service.handOver(self, peer, context, bytes)
        } catch {
            errorCaught(context: context, error: error)
        }
    }

    private func leave() {
        phase = .closed
        deadline = nil
        if let number = membership?.number { loop.remove(number) }
        membership = nil
        context = nil
    }

    private static let tick = TimeAmount.seconds(1)
}

extension BinaryConnection {
    func deadlinePassed() {
        guard let context else {
            deadline = nil
            return
        }
        let now = context.eventLoop.now
        deadline = now + Self.tick
        let limits = service.binary
        switch phase {
        case .opening where standing == nil:
            if began + TimeAmount(limits.preface) <= now { return end(nil, context) }
        case .opening, .serving:
            if let partialSince, window.hasRoom, partialSince + TimeAmount(limits.frameTimeout) <= now {
                service.logger.debug(
                    "binary connection ended",
                    metadata: ["reason": "a notification that does not end"]
                )
                return finish(context)
            }
            if window.count == 0, lastRead + TimeAmount(limits.idle) <= now { return end(nil, context) }
        case .finishing(let until):
            if until <= now { return farewell(context) }
        case .draining(let until):
            if until <= now { return close(context) }
        case .closed:
            deadline = nil
        }
        if let identity = standing?.certificate, identity.expires < service.clock.now() { reviewCertificate() }
    }
}
