import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Closes a connection whose client takes too long over a request's header or body, however it spreads the bytes.
///
/// The idle timeout alone would let a byte every few seconds hold a connection for ever. While the service owes an answer,
/// it may read nothing more, so the time of the next header or body begins only after that answer.
final class RequestDeadline: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// From the connection, or the end of the last answer, to the end of a header.
    private let header: TimeAmount
    /// From the end of the header to the end of the request.
    private let body: TimeAmount
    /// Event loop that measures the time; nil for the connection's own.
    private let clock: (any EventLoop)?
    private var isReadingBody = false
    /// Requests whose header has arrived and whose answer is not complete.
    private var unanswered = 0
    private var timer: Scheduled<Void>?

    init(header: TimeAmount, body: TimeAmount, clock: (any EventLoop)? = nil) {
        self.header = header
        self.body = body
        self.clock = clock
    }

    func handlerAdded(context: ChannelHandlerContext) {
        expect(within: header, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            isReadingBody = true
            unanswered += 1
            // An earlier request may still wait for its answer: then the client is not what is slow.
            if unanswered == 1 { expect(within: body, context) }
        case .body:
            break
        case .end:
            isReadingBody = false
            if unanswered == 0 { expect(within: header, context) } else { timer?.cancel() }
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) { noteAnswer(context) }
        context.write(data, promise: promise)
    }

    private func noteAnswer(_ context: ChannelHandlerContext) {
        unanswered = max(0, unanswered - 1)
        switch (unanswered, isReadingBody) {
        case (0, false): expect(within: header, context)
        // The request that is being read is the next to be answered.
        case (1, true): expect(within: body, context)
        // An answer may come before the end of its request, whose time goes on.
        default: break
        }
    }

    private func expect(within time: TimeAmount, _ context: ChannelHandlerContext) {
        let channel = context.channel
        timer?.cancel()
        timer = (clock ?? context.eventLoop).scheduleTask(in: time) { channel.close(promise: nil) }
    }
}

/// HTTP/1.1 with a ``RequestDeadline``, over TLS or not.
struct TimedChannel: HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    let base: HTTP1Channel
    let tls: WebTLS?
    let timeout: TimeAmount
    let clock: (any EventLoop)?

    var responder: HTTPChannelHandler.Responder { base.responder }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        do {
            try tls?.add(to: channel)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            let deadline = RequestDeadline(header: timeout, body: timeout, clock: clock)
            try pipeline.addHandler(deadline, position: .after(decoder))
            return value
        }
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
