import NIOCore

/// Stands between TLS and the socket of a feedback connection, and sees how the reader went.
///
/// A reader that has read everything ends TCP with a FIN. One that has not is answered for by its system with a reset. TLS
/// closes the socket as soon as both sides have said that they are done, which a reader may say without having read: so
/// the gate holds the close until TCP's own end is there.
final class FeedbackGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How long a close is held.
    private static let patience = TimeAmount.seconds(2)

    /// Whether the connection was reset, or broke otherwise, as far as the socket can tell.
    private(set) var isBroken = false
    /// Whether a close waits for TCP's end.
    var holdsClose = false
    private var timeout: Scheduled<Void>?

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isBroken = true
        context.fireErrorCaught(error)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .all = mode, holdsClose, !isBroken else { return context.close(mode: mode, promise: promise) }
        holdsClose = false
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) {
            // A reader that does not end TCP has not said that it read.
            self.isBroken = true
            context.close(promise: nil)
        }
        promise?.succeed()
    }

    func channelInactive(context: ChannelHandlerContext) {
        timeout?.cancel()
        context.fireChannelInactive()
    }
}
