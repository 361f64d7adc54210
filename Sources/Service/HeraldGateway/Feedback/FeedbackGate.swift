import NIOCore

/// Detects, between TLS and the socket of a feedback connection, whether the reader has read everything.
///
/// A reader that has read everything ends TCP with a FIN; otherwise its system sends a reset. TLS closes the socket once
/// both sides have sent close_notify, which a reader may send with unread data. So the gate delays the close until TCP
/// ends.
final class FeedbackGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Maximum delay of a close.
    private static let longestWait = TimeAmount.seconds(2)

    /// Whether the connection was reset or failed.
    private(set) var isBroken = false
    /// Whether to delay the next close until TCP ends.
    var holdsClose = false
    private var timeout: Scheduled<Void>?

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        isBroken = true
        context.fireErrorCaught(error)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .all = mode, holdsClose, !isBroken else { return context.close(mode: mode, promise: promise) }
        holdsClose = false
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: Self.longestWait) {
            // A reader that does not end TCP has confirmed nothing.
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
