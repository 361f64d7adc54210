import HeraldModel
import NIOCore
import NIOSSL
import NIOTLS

/// One connection to the service: passes bytes between the socket and its HTTP/2 session, and tells the dispatcher what
/// came of it.
///
/// It decides nothing: what is believed about the connection is in ``state``, what follows from it in the dispatcher.
final class ProviderLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How much is handed to the socket at once, in bytes.
    private static let writeBytes = 65_536

    let number: Int
    private let dispatcher: Dispatcher
    private var session: ClientSession?
    var state: LinkState
    private var context: ChannelHandlerContext?
    private var needsFlush = false
    private(set) var isClosed = false
    /// Why it is about to be closed, if that is known.
    private(set) var failure: (any Error)?
    /// What the service said when it ended the connection.
    var farewell: ClientSession.Farewell? { session?.farewell }

    init(number: Int, dispatcher: Dispatcher, state: LinkState) {
        self.number = number
        self.dispatcher = dispatcher
        self.state = state
    }

    // What the dispatcher asks of it.

    var openStreams: Int { session?.openStreams ?? 0 }

    /// How many more requests it takes now.
    var room: Int {
        guard let session else { return 0 }
        return state.room(streamLimit: session.streamLimit, openStreams: session.openStreams)
    }

    /// The calls that are on it.
    var calls: some Collection<Call> { (session?.calls ?? [:]).values }

    /// Puts a call on a stream of its own.
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
        case .abandon: close(ProviderError.silent)
        }
    }

    /// Writes what waits to be written.
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

    /// Ends the connection; nothing may be on it that matters.
    func leave() {
        state.leave()
        session?.goAway()
        needsFlush = true
        flush()
        close(nil)
    }

    /// Closes the connection, and says so at once: the end of TLS may take seconds where nobody is there.
    func close(_ reason: (any Error)?) {
        guard !isClosed else { return }
        isClosed = true
        failure = reason
        dispatcher.hasClosed(self)
        context?.close(promise: nil)
    }

    /// Takes what is on it; for when it is closed.
    func takeCalls() -> [Call] { session?.takeCalls() ?? [] }

    /// Takes the calls that ended.
    func takeEnded() -> [(call: Call, end: ClientSession.StreamEnd)] { session?.takeEnded() ?? [] }

    // What the channel tells.

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
        if session.farewell != nil { state.leave() }
        state.read(now: context.eventLoop.now)
        dispatcher.hasRead(self)
        if session.end != nil { close(ProviderError.broken) }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A service that just goes is told by the end of the connection, which follows.
        if case NIOSSLError.uncleanShutdown = error { return }
        close(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        close(nil)
    }
}

extension ProviderLink {
    /// What the service has against us, if it ended the connection for that: another would end the same way.
    var refusal: ProviderError? {
        guard let words = farewell?.words, let rejection = PushAnswer.reason(of: words).rejection,
            rejection.httpStatus == 403
        else { return nil }
        return ProviderError(
            .badCredential,
            "the service ends the connection with \(rejection.reason): \(rejection.explanation)"
        )
    }
}
