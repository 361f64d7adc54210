import CoreMetrics
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import NIOCore

/// One HTTP/2 connection of a provider: the channel handler behind TLS.
///
/// It performs I/O; ``HTTP2Session`` (protocol), ``RequestHandler`` (requests) and ``ConnectionLifetime`` (connection)
/// decide.
/// 1. Passes received bytes to the session, and the requests of a read burst to the request handler.
/// 2. Turns completions into replies, a batch at once.
/// 3. Writes everything pending once per turn of the event loop, while the client reads. While the client does not read,
///    the connection reads nothing from it.
///
/// It stays on its event loop; other threads only know its ``ProviderLoop``.
final class ProviderConnection: ChannelDuplexHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    private struct Output {
        var buffer = ByteBuffer()
        /// Since when the client reads nothing; nil if it reads.
        var blockedSince: NIODeadline?
        /// Whether the channel waits to read until the client does.
        var isReadHeld = false
    }

    private let service: ProviderService
    private let loop: HTTP2Loop
    private let session: HTTP2Session
    private let requests: RequestHandler
    private var lifetime: ConnectionLifetime
    /// Limits refused tokens, of which it has seen a number.
    private var refusedTokens: (limit: TokenBucket, count: Int)
    /// Why the certificate is refused; the client learns it after its SETTINGS.
    private var certificateRefusal: RefusalReason?
    /// The listener's entry; nil once the provider is known.
    private var unknown: AdmittedConnection?

    private var context: ChannelHandlerContext?
    /// The connection's number on its loop.
    private var number: UInt64?
    private var output = Output()
    /// The timer of the next reply that a drill delays.
    private var delayTimer: (due: NIODeadline, task: Scheduled<Void>)?
    private var isClosing = false
    private(set) var deadline: NIODeadline?

    /// Begins a session after the TLS handshake; `now` is the event loop's time.
    ///
    /// - Throws: ``GatewayError`` if there is no memory for another session.
    init(service: ProviderService, loop: HTTP2Loop, peer: HandshakePeer, now: NIODeadline) throws {
        self.service = service
        self.loop = loop
        let configuration = service.configuration
        let environment = ConnectionEnvironment(serverName: peer.serverName, listener: configuration.environment)
        lifetime = ConnectionLifetime(timeouts: configuration.timeouts, now: now)
        let limit = TokenBucket(
            capacity: configuration.refusedTokens,
            perSecond: configuration.refusedTokensPerSecond,
            now: now
        )
        refusedTokens = (limit, 0)
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
                certificateRefusal = refusal.refusalReason
            }
        }
        unknown = peer.connection
        session = try HTTP2Session(
            limits: configuration.http2,
            streams: peer.certificate == nil ? configuration.streamsBeforeToken : service.streams,
            bodies: service.bodies,
            now: now
        )
        requests = RequestHandler(
            service: service,
            session: session,
            eventLoop: loop.eventLoop,
            authorization: ProviderAuthorization(certificate: identity),
            environment: environment
        )
    }

    // MARK: - Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        let membership = loop.add(self)
        number = membership.number
        requests.completions = membership.handler
        if isKnown { becomeKnown() }
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
        let bytes = unwrapInboundIn(data)
        let end = bytes.withUnsafeReadableBytes { session.receive($0, now: now) }
        lifetime.received(hasBegun: session.hasClientSettings, now: now)
        guard end == nil else { return cutOff(context) }
        if let refusalReason = certificateRefusal {
            if session.hasClientSettings, !lifetime.isStopping { perform(lifetime.reject(refusalReason), context) }
        } else {
            serve(context, now)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush(context)
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if output.blockedSince == nil { context.read() } else { output.isReadHeld = true }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            flush(context)
        } else if output.blockedSince == nil {
            output.blockedSince = context.eventLoop.now
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ConnectionOverdue else { return context.fireUserInboundEventTriggered(event) }
        guard !isKnown else { return }
        perform(lifetime.refuse(.idleTimeout), context)
        flush(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        service.logger.debug("provider connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        close(context)
    }

    // MARK: - Completions

    func settled(_ number: UInt64, _ outcome: CompletionOutcome, now: NIODeadline) {
        let effect = requests.settled(number, outcome, now: now, isStopping: lifetime.isStopping)
        if let effect, let context { perform(effect, context) }
    }

    func flushSettled() {
        if let context { flush(context) }
    }

    // MARK: - Service

    func stop() {
        guard let context else { return }
        requests.stopDelaying()
        stop(context)
        flush(context)
    }

    /// Checks the certificate again: the revocation list has changed, or time has passed.
    func reviewCertificate() {
        guard let context, let identity = requests.certificate, certificateRefusal == nil,
            !service.admission.isValid(identity, at: service.clock.now())
        else { return }
        certificateRefusal = .badCertificate
        service.logger.notice("provider disconnected: its certificate is revoked or has expired")
        perform(lifetime.refuse(.badCertificate), context)
        flush(context)
    }

    // MARK: - Requests

    private func serve(_ context: ChannelHandlerContext, _ now: NIODeadline) {
        guard var request = session.nextRequest() else { return }
        let wallTime = service.clock.now()
        requests.beginBurst(wallTime)
        while true {
            if let effect = requests.answer(request, wallTime, isStopping: lifetime.isStopping) {
                perform(effect, context)
            }
            guard !isClosing, let next = session.nextRequest() else { break }
            request = next
        }
        if requests.isKnown {
            session.announce(streams: service.streams)
            becomeKnown()
        }
        let refused = requests.refusedTokens - refusedTokens.count
        guard refused > 0 else { return }
        refusedTokens.count = requests.refusedTokens
        if !refusedTokens.limit.take(refused, now: now) { cutOff(context, .tokenFlood) }
    }

    private var isKnown: Bool { requests.isKnown && certificateRefusal == nil }

    private func becomeKnown() {
        unknown?.becameKnown()
        unknown = nil
    }

    private func perform(_ effect: RequestHandler.ConnectionEffect, _ context: ChannelHandlerContext) {
        switch effect {
        case .write: write(context) { true }
        case .drop:
            guard !isClosing else { return }
            isClosing = true
            deadline = nil
            context.closeTransport()
        case .stop: stop(context)
        }
    }

    private func stop(_ context: ChannelHandlerContext) {
        perform(lifetime.stop(requestCount: session.requestCount, now: context.eventLoop.now), context)
    }

    // MARK: - Output

    private func flush(_ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        session.consume()
        write(context) { context.channel.isWritable }
        let next = lifetime.settled(requestCount: session.requestCount)
        if next != .wait {
            perform(next, context)
            write(context) { context.channel.isWritable }
        }
        guard session.end == nil else { return cutOff(context) }
        scheduleDelayedReplies(context)
        if context.channel.isWritable {
            resumeReading(context)
            if session.isOver || lifetime.hasSentGoAway { close(context) }
        } else if output.blockedSince == nil {
            output.blockedSince = context.eventLoop.now
        }
    }

    /// Writes pending frames as long as `mayWrite` says so.
    private func write(_ context: ChannelHandlerContext, while mayWrite: () -> Bool) {
        requests.countAccepted()
        var hasMore = true
        while hasMore, mayWrite() {
            output.buffer.clear()
            hasMore = session.drain(into: &output.buffer, upTo: service.configuration.writeBytes)
            guard output.buffer.readableBytes > 0 else { return }
            context.writeAndFlush(wrapOutboundOut(output.buffer), promise: nil)
        }
    }

    private func resumeReading(_ context: ChannelHandlerContext) {
        output.blockedSince = nil
        guard output.isReadHeld else { return }
        output.isReadHeld = false
        context.read()
    }

    private func scheduleDelayedReplies(_ context: ChannelHandlerContext) {
        guard let due = requests.nextDelayedReply, due != delayTimer?.due else { return }
        delayTimer?.task.cancel()
        let loop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: loop)
        let task = loop.assumeIsolated().scheduleTask(deadline: due) { connection.value.sendDelayedReplies() }
        delayTimer = (due, task)
    }

    private func sendDelayedReplies() {
        delayTimer = nil
        guard let context else { return }
        requests.sendDelayedReplies(context.eventLoop.now)
        flush(context)
    }

    // MARK: - End

    private func perform(_ action: ConnectionLifetime.Action, _ context: ChannelHandlerContext) {
        switch action {
        case .wait:
            break
        case .goAway(let refusalReason):
            session.goAway(Reply.body(refusalReason))
        case .reject(let refusalReason):
            session.goAway(Reply.body(refusalReason), disowning: true)
        case .cutOff:
            cutOff(context, .slow)
        case .close:
            close(context)
        }
    }

    /// Ends a connection whose peer exceeded a limit, with a last frame if the peer may still understand it.
    private func cutOff(_ context: ChannelHandlerContext, _ reason: CutOffReason? = nil) {
        guard !isClosing else { return }
        let cause = reason ?? session.end?.reason ?? .protocol
        service.metrics.countCutOff(cause)
        service.logger.debug("provider connection cut off", metadata: ["reason": "\(cause.rawValue)"])
        if session.end != .notHTTP2 {
            output.buffer.clear()
            session.writeLastFrame(into: &output.buffer)
            context.writeAndFlush(wrapOutboundOut(output.buffer), promise: nil)
        }
        close(context)
    }

    private func close(_ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        isClosing = true
        deadline = nil
        context.close(promise: nil)
    }

    private func leave() {
        isClosing = true
        deadline = nil
        if let number { loop.remove(number) }
        number = nil
        requests.endCatchesWithoutAnswer()
        requests.completions = nil
        requests.countAccepted()
        delayTimer?.task.cancel()
        delayTimer = nil
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
        if requests.isKnown { session.announce(streams: service.streams) }
        let facts = ConnectionLifetime.Facts(
            requestCount: session.requestCount,
            blockedSince: output.blockedSince,
            blockIsOverdue: isBlockOverdue
        )
        perform(lifetime.tick(facts, now: now), context)
        flush(context)
        if let identity = requests.certificate, identity.expires < service.clock.now() { reviewCertificate() }
        if session.requestCount == 0 { output.buffer = ByteBuffer() }
    }
}
