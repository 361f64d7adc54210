import CoreMetrics
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldWire
import Logging
import NIOCore
import NIOSSL

/// One connection of a provider to the port of the binary interface: the channel handler behind TLS.
///
/// It performs I/O; ``BinaryValidator`` (notifications) and ``InFlightNotifications`` (the one answer) decide.
/// 1. Hands the connection over to HTTP/2 if the first byte is that of its preface.
/// 2. Reads notifications and posts them, up to the limit in flight; at the limit it stops reading.
/// 3. Sends the error response once a notification is refused and all before it are settled, and closes its output. Then it
///    reads and drops for a while what the client still sends, so that no reset overtakes the response.
///
/// It stays on its event loop; other threads only know its ``ProviderLoop``.
final class BinaryConnection: ChannelDuplexHandler, RemovableChannelHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer
    typealias Reference = InFlightNotifications.Reference

    enum Phase {
        /// Before the first byte.
        case opening
        case serving
        /// Accepts nothing more, and waits until then for completions.
        case finishing(until: NIODeadline)
        /// The output is closed; received bytes are dropped until then.
        case draining(until: NIODeadline)
        case closed
    }

    let service: BinaryService
    private var rules: (validator: BinaryValidator, generation: UInt64)
    private let loop: ProviderLoop<BinaryConnection>
    private let peer: HandshakePeer
    private(set) var authorization: BinaryAuthorization?
    var ids = IdentifierSource()
    var validator: BinaryValidator { rules.validator }

    var phase = Phase.opening
    var inFlight: InFlightNotifications
    var catchUps = BinaryCatchUps()
    /// Notifications that are caught, until they are settled, by number.
    var caught: [UInt64: CaughtDraft] = [:]
    private(set) var input: BinaryInput
    private(set) var context: ChannelHandlerContext?
    var membership: (number: UInt64, handler: any CompletionHandler)?
    var deadline: NIODeadline?

    /// Begins after the TLS handshake; `now` is the event loop's time.
    init(service: BinaryService, loop: ProviderLoop<BinaryConnection>, peer: HandshakePeer, now: NIODeadline) {
        self.service = service
        self.loop = loop
        self.peer = peer
        rules = (service.validator, service.gateway.rules.generation)
        inFlight = InFlightNotifications(limit: service.binary.notificationsInHand)
        input = BinaryInput(service.binary, now: now)
        if let (identity, environment) = service.identify(peer, listener: service.binary.environment) {
            authorization = BinaryAuthorization(identity, environment)
        }
    }

    // MARK: - Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        membership = loop.add(self)
        service.metrics.connections.increment()
        if authorization != nil {
            peer.connection?.becameKnown()
        } else if peer.certificate != nil {
            end(nil, context)
        }
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
        input.lastRead = context.eventLoop.now
        switch phase {
        case .opening:
            if bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) == BinaryService.prefaceByte {
                return handOver(context, bytes)
            }
            guard authorization != nil else { return end(nil, context) }
            phase = .serving
            input.append(&bytes)
            serve(context)
        case .serving:
            input.append(&bytes)
            serve(context)
        case .draining:
            input.drainedBytes += bytes.readableBytes
            if input.drainedBytes > service.binary.drainBytes { close(context) }
        case .finishing, .closed:
            break
        }
    }

    func read(context: ChannelHandlerContext) {
        if mayRead { context.read() } else { input.isReadHeld = true }
    }

    /// The client has closed its output, by TLS or only by TCP; it may still wait for an answer.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        input.isOver = true
        switch phase {
        case .opening: end(nil, context)
        case .serving: serve(context)
        case .draining: close(context)
        case .finishing, .closed: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Many clients close TCP without close_notify; the event follows.
        if case NIOSSLError.uncleanShutdown = error { return }
        service.logger.debug("binary connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        close(context)
    }

    // MARK: - Completions

    func settled(_ number: UInt64, _ outcome: CompletionOutcome, now: NIODeadline) {
        if !caught.isEmpty { endCatch(number, outcome) }
        switch outcome {
        case .accepted:
            if inFlight.settle(number) { service.metrics.accepted.increment() }
        case .decideAgain:
            guard let waiting = catchUps.waiting[number] else { return }
            authorization?.refresh(service.admission)
            take(waiting.request, as: number, service.clock.now())
            if catchUps.waiting[number]?.confirmed == waiting.confirmed {
                catchUps.waiting[number] = nil
                service.confirmations?.ended(isRefused: false)
            }
        case .refused(let refusalReason, let since):
            refuse(number, Refusal(refusalReason, since: since), catchUps.waiting.removeValue(forKey: number)?.request)
        case .unknown: if let context { close(context) }
        }
    }

    func flushSettled() {
        guard let context else { return }
        serve(context)
    }

    // MARK: - Service

    func stop() {
        guard let context else { return }
        switch phase {
        case .opening: end(nil, context)
        case .serving: finish(context)
        case .draining: phase = .draining(until: context.eventLoop.now + TimeAmount(service.binary.stopDrain))
        case .finishing, .closed: break
        }
    }

    /// Checks the certificate again: the revocation list has changed, or time has passed.
    func reviewCertificate() {
        guard let context, let identity = authorization?.certificate,
            !service.admission.isValid(identity, at: service.clock.now())
        else { return }
        switch phase {
        case .opening: end(nil, context)
        case .serving, .finishing: abandon(context)
        case .draining, .closed: break
        }
    }

    // MARK: - Notifications

    private func serve(_ context: ChannelHandlerContext) {
        if case .serving = phase {
            takeAll(context)
            if input.isOver, inFlight.hasRoom { return finish(context) }
        }
        conclude(context)
        resumeReading(context)
    }

    private func takeAll(_ context: ChannelHandlerContext) {
        guard !input.isEmpty, inFlight.hasRoom else { return }
        let now = service.clock.now()
        if service.gateway.rules.isNewer(than: &rules.generation) { rules.validator = service.validator }
        authorization?.refresh(service.admission)
        catchUps.isTrustBehind = service.confirmations?.isBehind(.trust) ?? false
        while inFlight.hasRoom, let frame = input.next(at: context.eventLoop.now) {
            switch frame {
            case .notification(let notification):
                let isAnswered = notification.form != .simple
                let number = inFlight.nextNumber
                inFlight.open(Reference(identifier: notification.identifier, isAnswered: isAnswered))
                if service.gateway.catcher.isCatching { beginCatch(notification, number, now) }
                take(notification, as: number, now)
            case .fault(let fault):
                let reference = Reference(identifier: fault.identifier, isAnswered: fault.isAnswered)
                refuse(reference, fault.status)
                record(Refusal(fault: fault.status), identifier: fault.identifier)
            }
        }
        input.trim()
    }

    // MARK: - Reading and end

    private var mayRead: Bool {
        switch phase {
        case .opening, .draining, .closed: true
        case .serving: inFlight.hasRoom
        case .finishing: false
        }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        guard input.isReadHeld, mayRead else { return }
        input.isReadHeld = false
        context.read()
    }

    /// Accepts nothing more, and ends once everything in flight is settled.
    func finish(_ context: ChannelHandlerContext) {
        phase = .finishing(until: context.eventLoop.now + TimeAmount(service.binary.shutdown))
        conclude(context)
    }

    /// Sends the final response if everything before it is settled.
    private func conclude(_ context: ChannelHandlerContext) {
        if case .serving = phase, inFlight.hasRefused {
            phase = .finishing(until: context.eventLoop.now + TimeAmount(service.binary.shutdown))
        }
        guard case .finishing = phase else { return }
        if let failure = inFlight.failure {
            let response = BinaryErrorResponse(failure.status, identifier: failure.reference.identifier ?? 0)
            end(failure.reference.isAnswered ? response : nil, context)
        } else if inFlight.count == 0 {
            if input.isOver { end(nil, context) } else { abandon(context) }
        }
    }

    /// Ends the connection with notifications still in flight.
    func abandon(_ context: ChannelHandlerContext) {
        guard let (status, identifier) = inFlight.finalStatus else { return end(nil, context) }
        service.metrics.count(status)
        end(BinaryErrorResponse(status, identifier: identifier), context)
    }

    func end(_ response: BinaryErrorResponse?, _ context: ChannelHandlerContext) {
        let timeout = loop.isStopping ? service.binary.stopDrain : service.binary.drainTimeout
        phase = .draining(until: context.eventLoop.now + TimeAmount(timeout))
        input.drop()
        if let response {
            var buffer = context.channel.allocator.buffer(capacity: BinaryErrorResponse.byteCount)
            buffer.writeErrorResponse(response)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
        context.close(mode: .output, promise: nil)
        if input.isOver { close(context) } else { resumeReading(context) }
    }

    func close(_ context: ChannelHandlerContext) {
        if case .closed = phase { return }
        phase = .closed
        deadline = nil
        context.closeTransport()
    }

    private func handOver(_ context: ChannelHandlerContext, _ bytes: ByteBuffer) {
        do {
            try service.handOver(from: self, peer, context, bytes)
        } catch {
            errorCaught(context: context, error: error)
        }
    }

    private func leave() {
        phase = .closed
        deadline = nil
        if let number = membership?.number { loop.remove(number) }
        membership = nil
        caught = [:]
        context = nil
    }

    static let tick = TimeAmount.seconds(1)
}
