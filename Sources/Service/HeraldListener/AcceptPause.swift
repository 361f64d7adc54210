import NIOCore

/// Stops accepting while a listener has as many descriptors as it may; in the pipeline of the listening socket.
///
/// The limit of connections alone does not bound descriptors: connections that must go are open until their event loop
/// has closed them. Without the bound a flood would take the descriptors of the store, the trust folder and the console.
final class AcceptPause: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    private let limit: Int
    private var open = 0
    private var isReadHeld = false

    init(limit: Int) {
        self.limit = limit
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        open += 1
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        unwrapInboundIn(data).closeFuture.hop(to: context.eventLoop).whenComplete { _ in
            bound.value.handler.closed(bound.value.context)
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        if open < limit { context.read() } else { isReadHeld = true }
    }

    private func closed(_ context: ChannelHandlerContext) {
        open -= 1
        guard isReadHeld, open < limit else { return }
        isReadHeld = false
        context.read()
    }
}
