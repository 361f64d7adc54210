package import NIOCore
import NIOSSL

/// Answers a client that speaks HTTP/1.1 over TLS to a port that speaks something else.
///
/// It waits for the first bytes of a client that has negotiated no protocol, and holds what the port's own protocol writes
/// until then: HTTP/2 begins with SETTINGS, which such a client cannot read. Then it makes way.
final class HTTP1Answer: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let words: String
    private let refusals: RefusalLog
    private var first = ByteBuffer()
    private var held: [(data: NIOAny, promise: EventLoopPromise<Void>?)] = []
    private var isRefused = false

    init(_ words: String, refusals: RefusalLog) {
        self.words = words
        self.refusals = refusals
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        var bytes = unwrapInboundIn(data)
        first.writeBuffer(&bytes)
        guard let other = OtherProtocol(first.readableBytesView) else { return }
        guard case .http1 = other else { return makeWay(context) }
        isRefused = true
        refusals.note(.http1, words, context.channel)
        for write in held { write.promise?.fail(ChannelError.ioOnClosedChannel) }
        held = []
        context.writeAndFlush(wrapOutboundOut(other.answer(words)), promise: nil)
        context.close(promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isRefused else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        held.append((data, promise))
    }

    func flush(context: ChannelHandlerContext) {
        if isRefused { context.flush() }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        send(context)
        context.close(mode: mode, promise: promise)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isRefused, first.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(first)) }
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for write in held { write.promise?.fail(ChannelError.ioOnClosedChannel) }
        held = []
    }

    /// Adds an answering handler right behind TLS.
    static func add(
        _ words: String,
        behind tls: NIOSSLServerHandler,
        of channel: any Channel,
        _ refusals: RefusalLog
    ) throws {
        let handler = HTTP1Answer(words, refusals: refusals)
        try channel.pipeline.syncOperations.addHandler(handler, position: .after(tls))
    }

    private func makeWay(_ context: ChannelHandlerContext) {
        send(context)
        context.fireChannelRead(wrapInboundOut(first))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private func send(_ context: ChannelHandlerContext) {
        guard !held.isEmpty else { return }
        for write in held { context.write(write.data, promise: write.promise) }
        held = []
        context.flush()
    }
}

extension Channel {
    /// Adds a handler in front of the others behind TLS, so that it sees how the peer ends the connection.
    /// - Throws: An error if the channel has no TLS.
    package func addBehindTLS(_ handler: some ChannelHandler) throws {
        let pipeline = pipeline.syncOperations
        // A client of another protocol is answered first.
        if let answer = try? pipeline.handler(type: HTTP1Answer.self) {
            try pipeline.addHandler(handler, position: .after(answer))
        } else {
            try pipeline.addHandler(handler, position: .after(try pipeline.handler(type: NIOSSLServerHandler.self)))
        }
    }
}
