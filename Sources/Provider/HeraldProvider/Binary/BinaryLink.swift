import HeraldWire
import NIOCore
import NIOSSL
import NIOTLS

/// One connection of the binary interface: writes for the dispatcher and reads the one answer.
final class BinaryLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let dispatcher: BinaryDispatcher
    private var context: ChannelHandlerContext?
    private var input = ByteBuffer()
    /// Whether the TLS handshake is complete.
    private(set) var isOpen = false
    private(set) var isClosed = false
    /// Reason for closing, if known.
    private(set) var failure: (any Error)?

    init(dispatcher: BinaryDispatcher) {
        self.dispatcher = dispatcher
    }

    // MARK: - Called by the dispatcher

    var isWritable: Bool { context?.channel.isWritable ?? false }

    func makeBuffer(capacity: Int) -> ByteBuffer? {
        context?.channel.allocator.buffer(capacity: capacity)
    }

    /// Writes a buffer, after which `count` notifications have been written in total.
    func write(_ buffer: ByteBuffer, upTo count: Int) {
        guard let context, !isClosed else { return }
        let written = context.eventLoop.makePromise(of: Void.self)
        let (dispatcher, link) = (dispatcher, NIOLoopBound(self, eventLoop: context.eventLoop))
        written.futureResult.whenSuccess { dispatcher.hasFlushed(link.value, count) }
        context.writeAndFlush(wrapOutboundOut(buffer), promise: written)
    }

    /// Closes the connection; the dispatcher learns it at once, since TLS may take seconds to end.
    func close(_ reason: (any Error)?) {
        guard !isClosed else { return }
        isClosed = true
        failure = reason
        dispatcher.hasClosed(self)
        context?.close(promise: nil)
    }

    // MARK: - ChannelInboundHandler

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        close(nil)
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        isOpen = true
        dispatcher.hasOpened(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosed else { return }
        var bytes = unwrapInboundIn(data)
        input.writeBuffer(&bytes)
        if let response = input.readErrorResponse() {
            dispatcher.hasAnswered(self, response)
            return close(nil)
        }
        let first = input.getInteger(at: input.readerIndex, as: UInt8.self)
        guard first == BinaryErrorResponse.command, input.readableBytes < BinaryErrorResponse.byteCount else {
            return close(ProviderError.notBinary)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { dispatcher.hasRoom(self) }
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

extension ProviderError {
    static let notBinary = ProviderError(
        .badAnswer,
        "the server does not speak the binary interface: check host and port"
    )
    static let notNaming = ProviderError(
        .badAnswer,
        "the service's errors do not name a notification, so no outcome could be known: this service cannot be used"
    )
    static let stopping = ProviderError(.unreachable, "the service is stopping")
}
