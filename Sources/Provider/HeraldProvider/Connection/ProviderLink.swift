import HeraldModel
import NIOCore
import NIOSSL
import NIOTLS

/// One HTTP/2 connection: passes bytes between the socket and its session, and events to the dispatcher.
final class ProviderLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Maximum length of one write, in bytes.
    private static let writeBytes = 65_536

    let number: Int
    private let dispatcher: Dispatcher
    private var session: ClientSession?
    var state: LinkState
    private var context: ChannelHandlerContext?
    private var needsFlush = false
    private(set) var isClosed = false
    /// Reason for closing, if known.
    private(set) var failure: (any Error)?
    /// The GOAWAY that the service sent.
    var goAway: ClientSession.GoAway? { session?.receivedGoAway }

    init(number: Int, dispatcher: Dispatcher, state: LinkState) {
        self.number = number
        self.dispatcher = dispatcher
        self.state = state
    }

    // MARK: - Called by the dispatcher

    var openStreams: Int { session?.openStreams ?? 0 }

    /// Number of further requests that it takes now.
    var room: Int {
        guard let session else { return 0 }
        return state.room(streamLimit: session.streamLimit, openStreams: session.openStreams)
    }

    /// Calls in flight.
    var calls: some Collection<Call> { (session?.calls ?? [:]).values }

    /// Starts a call on a new stream.
    func begin(_ call: Call) -> Bool {
        needsFlush = true
        return session?.begin(call) ?? false
    }

    func cancel(_ call: Call) {
        needsFlush = true
        session?.cancel(call)
    }

    func perform(_ action: LinkState.Action) {
        switch action {
        case .nothing: break
        case .ping:
            needsFlush = true
            session?.ping()
        case .close: close(ProviderError.silent)
        }
    }

    /// Writes the pending frames.
    func flush() {
        guard needsFlush, let context, let session, context.channel.isWritable else { return }
        needsFlush = false
        var hasMore = true
        while hasMore, context.channel.isWritable {
            var buffer = context.channel.allocator.buffer(capacity: 4096)
            hasMore = session.drain(into: &buffer, upTo: Self.writeBytes)
            guard buffer.readableBytes > 0 else { break }
            context.write(wrapOutboundOut(buffer), promise: nil)
        }
        needsFlush = hasMore
        context.flush()
        if session.end != nil { close(nil) }
    }

    /// Sends GOAWAY and closes; no request may be in flight.
    func closeGracefully() {
        state.drain()
        session?.goAway()
        needsFlush = true
        flush()
        close(nil)
    }

    /// Closes the connection; the dispatcher learns it at once, since TLS may take seconds to end.
    func close(_ reason: (any Error)?) {
        guard !isClosed else { return }
        isClosed = true
        failure = reason
        dispatcher.hasClosed(self)
        context?.close(promise: nil)
    }

    /// Takes the calls in flight, after it was closed.
    func takeCalls() -> [Call] { session?.takeCalls() ?? [] }

    func takeEnded() -> [(call: Call, end: ClientSession.StreamEnd)] { session?.takeEnded() ?? [] }

    // MARK: - ChannelInboundHandler

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated) = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard negotiated == "h2" else { return close(ProviderError.notHTTP2) }
        do {
            session = try ClientSession()
            state.read(now: context.eventLoop.now)
            needsFlush = true
            flush()
        } catch {
            close(error)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let session else { return }
        unwrapInboundIn(data).withUnsafeReadableBytes { session.receive($0) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard let session, !isClosed else { return }
        needsFlush = true
        if session.hasSettings { state.receivedSettings() }
        if session.receivedGoAway != nil { state.drain() }
        state.read(now: context.eventLoop.now)
        dispatcher.hasRead(self)
        if session.end != nil { close(ProviderError.broken) }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The end of the connection follows and is handled there.
        if case NIOSSLError.uncleanShutdown = error { return }
        close(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        close(nil)
    }
}

extension ProviderLink {
    /// The error of a GOAWAY that refuses the credential; a new connection would end the same way.
    var refusal: ProviderError? {
        guard let words = goAway?.words, let reason = PushAnswer.reason(of: words).known,
            reason.httpStatus == 403
        else { return nil }
        return ProviderError(
            .badCredential,
            "the service closed the connection with \(reason.reason): \(reason.explanation)"
        )
    }
}
