import NIOCore
import NIOSSL
import NIOTLS

/// Handler of one connection to one server.
///
/// It stays on its event loop.
final class ServerLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let server: ServerPool.Server
    private weak var owner: ConnectionDriver?
    private let limits: NATSLimits
    private let makeTLS: () throws(NATSError) -> NIOSSLClientHandler
    private var decoder: NATSDecoder
    private var handshake: Handshake
    private var context: ChannelHandlerContext?
    private(set) var readySince: NIODeadline?
    private var timer: Scheduled<Void>?
    private var unansweredPings = 0
    /// The server's last `-ERR`: the reason, when it then closes the connection.
    private var lastError: NATSError?
    private var hasEnded = false
    /// Answers of one read, handed over together.
    private var answers: [NATSMessage] = []

    init(
        _ server: ServerPool.Server,
        handshake: Handshake,
        limits: NATSLimits,
        owner: ConnectionDriver,
        makeTLS: @escaping () throws(NATSError) -> NIOSSLClientHandler
    ) {
        self.server = server
        self.handshake = handshake
        self.limits = limits
        self.owner = owner
        self.makeTLS = makeTLS
        decoder = NATSDecoder(
            lineBytes: limits.controlLineBytes,
            infoBytes: limits.infoBytes,
            messageBytes: limits.messageBytes
        )
    }

    // MARK: - Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        schedule(limits.connectTimeout) { link in
            link.end(NATSError(.timeout, "\(link.server.address) did not accept the connection in time"))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end(NATSError(.connectionLost, "the connection to \(server.address) is gone"))
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasEnded else { return }
        unansweredPings = 0
        decoder.append(unwrapInboundIn(data))
        do throws(NATSError) {
            while !hasEnded, let operation = try decoder.next() { try received(operation) }
            handOver()
        } catch {
            handOver()
            end(error)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            do throws(NATSError) {
                try perform(try handshake.secured())
            } catch {
                end(error)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(lastError ?? NATSError(.connectionLost, "\(server.address) has closed the connection"))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let isTLS = error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError
        end(
            isTLS
                ? NATSError(.tls, "TLS with \(server.address) failed: \(error)")
                : NATSError(.connectionLost, "the connection to \(server.address) failed: \(error)")
        )
    }

    // MARK: - Operations

    private func received(_ operation: ServerOperation) throws(NATSError) {
        guard readySince != nil else {
            return try perform(try handshake.received(operation, bytesLeft: decoder.pendingBytes))
        }
        switch operation {
        case .message(let message) where message.subscription == Outbox.inboxNumber:
            answers.append(message)
        case .message(let message):
            // Messages and answers keep their order.
            handOver()
            owner?.linkReceived(message: message)
        case .ping: write(ByteBuffer(staticString: ByteBuffer.pong))
        case .info(let info): owner?.link(self, received: info)
        case .error(let text) where text.hasPrefix("Permissions Violation"):
            owner?.link(self, wasRefused: Handshake.error(text))
        case .error(let text): lastError = Handshake.error(text)
        case .pong, .ok: break
        }
    }

    private func handOver() {
        guard !answers.isEmpty else { return }
        let taken = answers
        answers.removeAll(keepingCapacity: true)
        owner?.linkReceived(answers: taken)
    }

    private func perform(_ effect: Handshake.Effect) throws(NATSError) {
        switch effect {
        case .none: break
        case .startTLS:
            guard let context else { return }
            let tls = try makeTLS()
            do {
                try context.pipeline.syncOperations.addHandler(tls, position: .first)
            } catch {
                throw NATSError(.tls, "TLS with \(server.address) cannot begin: \(error)")
            }
        case .connect(let options):
            var buffer = ByteBuffer()
            buffer.writeConnect(try options.json())
            buffer.writeStaticString(ByteBuffer.ping)
            write(buffer)
        case .ready(let info):
            readySince = .now()
            schedulePing()
            owner?.linkIsReady(self, info)
        }
    }

    // MARK: - Liveness

    private func schedulePing() {
        schedule(limits.pingInterval) { link in
            guard link.unansweredPings < link.limits.unansweredPings else {
                return link.end(NATSError(.connectionLost, "\(link.server.address) does not answer"))
            }
            link.unansweredPings += 1
            link.write(ByteBuffer(staticString: ByteBuffer.ping))
            link.schedulePing()
        }
    }

    private func schedule(_ time: Duration, _ body: @escaping (ServerLink) -> Void) {
        guard let context, !hasEnded else { return }
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { [weak self] in
            if let self { body(self) }
        }
    }

    // MARK: - Writes and end

    /// Writes bytes, and flushes them; the promise is fulfilled when the socket has taken them.
    func write(_ buffer: ByteBuffer, promise: EventLoopPromise<Void>? = nil) {
        guard let context, !hasEnded else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        context.writeAndFlush(wrapOutboundOut(buffer), promise: promise)
    }

    /// Ends the link; the owner hears of it before this returns.
    func end(_ error: NATSError) {
        guard !hasEnded else { return }
        hasEnded = true
        timer?.cancel()
        context?.close(promise: nil)
        owner?.linkHasEnded(self, error)
    }
}
