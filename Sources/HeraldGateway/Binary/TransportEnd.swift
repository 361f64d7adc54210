import NIOCore
import NIOSSL

/// The end of a connection below TLS.
enum TransportEnd {
    /// Closes the socket, without waiting for the peer to end TLS too.
    ///
    /// Where TLS was not ended before, the peer sees that what it got was cut off.
    static func close(_ context: ChannelHandlerContext) {
        guard let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) else {
            return context.close(promise: nil)
        }
        tls.close(promise: nil)
    }
}
