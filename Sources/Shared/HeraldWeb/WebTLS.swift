import NIOCore
package import NIOSSL
import Synchronization

/// TLS of a listener, whose certificate may change while it listens.
package final class WebTLS: Sendable {
    private let current: Mutex<NIOSSLContext>

    package init(_ context: NIOSSLContext) {
        current = Mutex(context)
    }

    /// Sets the TLS context of later connections.
    package func replaceContext(_ context: NIOSSLContext) {
        current.withLock { $0 = context }
    }

    /// Adds TLS to a connection that has no handlers yet.
    func add(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(PlainRequestHandler())
        try pipeline.addHandler(NIOSSLServerHandler(context: current.withLock { $0 }))
    }
}

/// Tells a client that speaks plain HTTP to speak TLS, which it would else see as a closed connection.
private final class PlainRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The first byte of every TLS connection: a handshake record (RFC 8446 §5.1).
    private static let handshake: UInt8 = 22
    private static let words = "this port speaks TLS: use https://\n"

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        let bytes = unwrapInboundIn(data)
        guard bytes.readableBytesView.first.map({ $0 != Self.handshake }) == true else {
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            return
        }
        isRefused = true
        let answer = """
            HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: \(Self.words.utf8.count)\r\n\
            connection: close\r\n\r\n\(Self.words)
            """
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer))).whenComplete { _ in
            channel.close(promise: nil)
        }
    }
}

extension Channel {
    /// Closes the socket at once, without a TLS shutdown; on the event loop.
    func closeTransport() {
        if let tls = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            tls.close(promise: nil)
        } else {
            close(promise: nil)
        }
    }
}

extension ChannelHandlerContext {
    /// Bytes of the connection that the system has not taken yet.
    var waitingBytes: Int? { try? channel.syncOptions?.getOption(.bufferedWritableBytes) }
}
