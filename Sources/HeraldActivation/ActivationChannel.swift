import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// What all connections of the door share: the TLS context in force, and how many there are.
final class ActivationListener: Sendable {
    private struct State {
        var context: NIOSSLContext
        var connections = 0
    }

    private let state: Mutex<State>

    init(context: NIOSSLContext) {
        state = Mutex(State(context: context))
    }

    func replaceContext(_ context: NIOSSLContext) {
        state.withLock { $0.context = context }
    }

    /// Counts a connection; nil past the limit.
    func admit(limit: Int) -> NIOSSLContext? {
        state.withLock { state in
            guard state.connections < limit else { return nil }
            state.connections += 1
            return state.context
        }
    }

    func leave() {
        state.withLock { $0.connections -= 1 }
    }
}

/// One connection: TLS with the context of the moment, deadlines, and Hummingbird's HTTP/1.1 on top.
struct ActivationChannel: HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    let base: HTTP1Channel
    let listener: ActivationListener
    let configuration: ActivationConfiguration

    var responder: HTTPChannelHandler.Responder { base.responder }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard let context = listener.admit(limit: configuration.maximumConnections) else {
            // Closed once it is set up: who accepted it waits for that.
            channel.eventLoop.execute { channel.close(promise: nil) }
            return base.setup(channel: channel, logger: logger)
        }
        channel.closeFuture.whenComplete { _ in listener.leave() }
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(NIOSSLServerHandler(context: context))
            try pipeline.addHandler(ConnectionDeadlines(configuration))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Ends a connection that takes too long: in its handshake, in all, or while the service stops.
private final class ConnectionDeadlines: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let configuration: ActivationConfiguration
    private var handshake: Scheduled<Void>?
    private var end: Scheduled<Void>?

    init(_ configuration: ActivationConfiguration) {
        self.configuration = configuration
    }

    func handlerAdded(context: ChannelHandlerContext) {
        handshake = close(context, in: configuration.handshakeTimeout)
        end = close(context, in: configuration.connectionLifetime)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        handshake?.cancel()
        end?.cancel()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted:
            handshake?.cancel()
        case is ChannelShouldQuiesceEvent:
            end?.cancel()
            end = close(context, in: configuration.shutdownTimeout)
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // TLS that failed: random bytes, a certificate of another authority. BoringSSL has sent its alert.
        if error is NIOSSLError {
            context.close(promise: nil)
        } else {
            context.fireErrorCaught(error)
        }
    }

    private func close(_ context: ChannelHandlerContext, in time: Duration) -> Scheduled<Void> {
        let channel = context.channel
        return context.eventLoop.scheduleTask(in: TimeAmount(time)) { channel.close(promise: nil) }
    }
}
