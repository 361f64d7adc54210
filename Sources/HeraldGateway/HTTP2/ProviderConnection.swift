import CoreMetrics
import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import NIOCore

/// One connection of a provider: the channel handler behind TLS.
///
/// It performs; what is decided is decided in ``HTTP2Session`` (protocol), ``RequestIntake`` (requests) and
/// ``ConnectionLifetime`` (the connection).
/// 1. Feeds the session with what is read, and takes the requests of a read burst to the post office.
/// 2. Turns receipts into answers, those of a batch at once.
/// 3. Writes all that is ready in one piece for each turn of the event loop, and only while the client reads; while it
///    does not, nothing more is read from it.
///
/// It stays on its event loop; only its ``ProviderLoop`` is known to others.
final class ProviderConnection: ChannelDuplexHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    let service: ProviderService
    private(set) var intake: RequestIntake
    private(set) var channelIntake: ChannelIntake
    private var rulesGeneration: UInt64
    private let loop: HTTP2Loop
    let session: HTTP2Session
    @exclusivity(unchecked) var standing: ProviderStanding
    private var environment: NamedEnvironment
    var lifetime: ConnectionLifetime
    @exclusivity(unchecked) var ids = IdentifierSource()
    private var refusedTokens: TokenBucket
    private var refusedTokenCount = 0
    /// Why the certificate is not taken; said once the client has begun to speak.
    private var certificateRefusal: Rejection?

    private(set) var context: ChannelHandlerContext?
    private(set) var membership: (number: UInt64, desk: any ReceiptDesk)?
    var output = ByteBuffer()
    private var isReadHeld = false
    private var blockedSince: NIODeadline?
    var drills = ConnectionDrills()
    /// The highest stream whose request was looked at.
    private(set) var highestStream: Int32 = 0
    private var isTouched = false
    private var isClosing = false
    private(set) var deadline: NIODeadline?

    /// Begins a session for a peer whose handshake is over; `now` is by the event loop's clock.
    ///
    /// - Throws: ``GatewayError`` if there is no memory for another session.
    init(service: ProviderService, loop: HTTP2Loop, peer: HandshakePeer, now: NIODeadline) throws {
        self.service = service
        self.loop = loop
        let configuration = service.configuration
        rulesGeneration = service.rules.generation
        intake = service.intake
        channelIntake = service.channelIntake
        environment = NamedEnvironment(serverName: peer.serverName, door: configuration.environment)
        lifetime = ConnectionLifetime(timeouts: configuration.timeouts, now: now)
        refusedTokens = TokenBucket(
            capacity: configuration.refusedTokens,
            perSecond: configuration.refusedTokensPerSecond,
            now: now
        )
        var identity: ProviderCertificateIdentity?
        if let certificate = peer.certificate {
            switch service.admission.identify(certificate: certificate, at: service.clock.now()) {
            case .success(let found):
                identity = found
                if let asked = environment.ofConnection, !found.environments.contains(asked) {
                    certificateRefusal = .badCertificateEnvironment
                }
            case .failure(let refusal):
                service.logger.notice("provider certificate refused", metadata: ["reason": "\(refusal.message)"])
                certificateRefusal = refusal.rejection
            }
        }
        standing = ProviderStanding(certificate: identity)
        session = try HTTP2Session(
            limits: configuration.http2,
            streams: peer.certificate == nil ? configuration.streamsBeforeToken : service.welcomeStreams,
            bodies: service.bodies,
            now: now
        )
    }

    // What the channel says.

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        membership = loop.add(self)
        service.metrics.connections.increment()
        flush(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosing else { return }
        let now = context.eventLoop.now
        let end = unwrapInboundIn(data).withUnsafeReadableBytes { session.receive($0, now: now) }
        lifetime.received(hasBegun: session.hasClientSettings, now: now)
        guard end == nil else { return cutOff(context) }
        if let rejection = certificateRefusal {
            if session.hasClientSettings, !lifetime.isStopping { perform(lifetime.turnAway(rejection), context) }
        } else {
            serve(context, now)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush(context)
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if blockedSince == nil { context.read() } else { isReadHeld = true }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            flush(context)
        } else if blockedSince == nil {
            blockedSince = context.eventLoop.now
        }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        service.logger.debug("provider connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        close(context)
    }

    // What the post office says.

    /// A receipt was settled.
    func settled(_ number: UInt64, _ outcome: ReceiptOutcome) {
        guard let slot = session.request(number), slot.phase == .inHand else { return }
        switch outcome {
        case .accepted: accept(slot)
        case .refused(let rejection): refuse(slot, Refusal(rejection, PostRefusal.storeTrouble))
        }
    }

    /// Notes that receipts are being settled.
    ///
    /// - Returns: Whether this is the first since the last ``flushTouched()``.
    func noteTouched() -> Bool {
        defer { isTouched = true }
        return !isTouched
    }

    /// Writes the answers to the receipts that were settled.
    func flushTouched() {
        isTouched = false
        if let context { flush(context) }
    }

    // What the gateway says.

    /// The service stops.
    func stop() {
        guard let context else { return }
        drills.holdsNothing = true
        releaseHeld(until: .distantFuture)
        perform(lifetime.stop(requestCount: session.requestCount, now: context.eventLoop.now), context)
        flush(context)
    }

    /// Looks again whether the connection's certificate is good: the revocation list has changed, or time has passed.
    func reviewCertificate() {
        guard let context, let identity = standing.certificate, certificateRefusal == nil,
            !service.admission.isStillGood(identity, at: service.clock.now())
        else { return }
        certificateRefusal = .badCertificate
        service.logger.notice("provider disconnected: its certificate is revoked or has expired")
        perform(lifetime.refuse(.badCertificate), context)
        flush(context)
    }

    // Requests and answers.

    private func serve(_ context: ChannelHandlerContext, _ now: NIODeadline) {
        guard var slot = session.nextRequest() else { return }
        if service.rules.isNewer(than: &rulesGeneration) {
            intake = service.intake
            channelIntake = service.channelIntake
        }
        let wallTime = service.clock.now()
        standing.refresh(intake.admission, now: wallTime)
        while true {
            answer(slot, wallTime)
            guard !isClosing, let next = session.nextRequest() else { break }
            slot = next
        }
        if standing.isKnown { session.announce(streams: service.welcomeStreams) }
        let refused = standing.refusedTokens - refusedTokenCount
        guard refused > 0 else { return }
        refusedTokenCount = standing.refusedTokens
        if !refusedTokens.take(refused, now: now) { cutOff(context, "token_flood") }
    }

    private func answer(_ slot: RequestSlot, _ now: WallTime) {
        highestStream = max(highestStream, slot.streamID)
        slot.explains = slot.fields.value(of: .heraldExplain, is: "1")
        slot.isAboutChannels = RequestRoute.isAboutChannels(slot.fields)
        guard !lifetime.isStopping else { return refuse(slot, stopRefusal) }
        let asked = environment.environment(of: slot.fields)
        guard !slot.isAboutChannels else { return answerAboutChannels(slot, asked, now) }
        switch intake.decide(slot, &standing, environment: asked, ids: &ids, now: now) {
        case .refused(let refusal):
            refuse(slot, refusal)
        case .notification(let notification, let generation):
            if service.drills.isOn, isDrilled(notification, generation, slot, asked) { return }
            post(notification, generation, slot, asked)
        case .unreadable(let notification, let generation):
            post(notification, slot, asked) {
                service.letterBox.discard($0, generation: generation, as: .discardedUndeliverable)
            }
        }
    }

    /// Refuses a request; `retryAfter` is in seconds, and nil for what is usual.
    func refuse(_ slot: RequestSlot, _ refusal: Refusal, retryAfter: Int? = nil) {
        service.metrics.count(refusal.rejection)
        slot.replyID = slot.replyID ?? givenID(slot) ?? IdentifierText(ids.identifier(), upperCase: true)
        slot.replyUniqueID = nil
        // What is refused is said as on any day: a drill withholds acceptance alone.
        slot.drill?.withholds = nil
        var reply = Reply(refusal, explains: slot.explains)
        if let retryAfter { reply.retryAfter = Array("\(retryAfter)".utf8) }
        // The answer to HEAD has no body (RFC 9110 §9.3.2).
        if slot.fields.value(of: .method, is: "HEAD") { reply.body = [] }
        give(reply, to: slot)
    }

    func give(_ reply: Reply, to slot: RequestSlot) {
        if let drill = slot.drill { return give(reply, to: slot, drill) }
        session.reply(to: slot, reply)
    }

    /// The provider's own identifier, if it is one.
    func givenID(_ slot: RequestSlot) -> IdentifierText? {
        slot.fields.withValue(of: slot.isAboutChannels ? .apnsRequestID : .apnsID) { text in
            NotificationID(utf8: text) == nil ? nil : IdentifierText(copying: text)
        } ?? nil
    }

    // Bytes out, and the end.

    private func flush(_ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        session.consume()
        drain(context)
        let next = lifetime.settled(requestCount: session.requestCount)
        if next != .wait {
            perform(next, context)
            drain(context)
        }
        guard session.end == nil else { return cutOff(context) }
        if context.channel.isWritable {
            readOn(context)
            if session.isOver || lifetime.hasLeft { close(context) }
        } else if blockedSince == nil {
            blockedSince = context.eventLoop.now
        }
    }

    private func drain(_ context: ChannelHandlerContext) {
        let channel = context.channel
        var hasMore = true
        while hasMore, channel.isWritable {
            output.clear()
            hasMore = session.drain(into: &output, upTo: service.configuration.writeBytes)
            guard output.readableBytes > 0 else { return }
            context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        }
    }

    private func readOn(_ context: ChannelHandlerContext) {
        blockedSince = nil
        guard isReadHeld else { return }
        isReadHeld = false
        context.read()
    }

    func perform(_ action: ConnectionLifetime.Action, _ context: ChannelHandlerContext) {
        switch action {
        case .wait:
            break
        case .sayFarewell(let rejection):
            session.goAway(Reply.body(rejection))
        case .turnAway(let rejection):
            session.goAway(Reply.body(rejection), disowning: true)
        case .cutOff:
            cutOff(context, "slow")
        case .close:
            close(context)
        }
    }

    /// Ends a connection whose peer has gone too far, with one last frame where it may still understand it.
    private func cutOff(_ context: ChannelHandlerContext, _ reason: String? = nil) {
        guard !isClosing else { return }
        let cause = reason ?? session.end?.metricReason ?? "protocol"
        service.metrics.countCutOff(cause)
        service.logger.debug("provider connection cut off", metadata: ["reason": "\(cause)"])
        if session.end != .notHTTP2 {
            output.clear()
            session.writeLastFrame(into: &output)
            context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        }
        close(context)
    }

    /// Closes by a handler's context; from that of TLS the peer is told nothing.
    func close(_ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        isClosing = true
        deadline = nil
        context.close(promise: nil)
    }

    private func leave() {
        isClosing = true
        deadline = nil
        if let number = membership?.number { loop.remove(number) }
        membership = nil
        drills.release?.cancel()
        drills = ConnectionDrills()
        context = nil
    }

    private static let tick = TimeAmount.seconds(1)
}

extension ProviderConnection {
    func deadlinePassed() {
        guard let context, !isClosing else {
            deadline = nil
            return
        }
        let now = context.eventLoop.now
        deadline = now + Self.tick
        let isBlockOverdue = !session.sweep(now: now)
        if standing.isKnown { session.announce(streams: service.welcomeStreams) }
        let facts = ConnectionLifetime.Facts(
            isKnown: standing.isKnown,
            requestCount: session.requestCount,
            blockedSince: blockedSince,
            blockIsOverdue: isBlockOverdue
        )
        perform(lifetime.tick(facts, now: now), context)
        flush(context)
        if let identity = standing.certificate, identity.expires < service.clock.now() { reviewCertificate() }
        if session.requestCount == 0 { output = ByteBuffer() }
    }
}
