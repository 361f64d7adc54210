import HeraldDoor
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// What all connections of the door share: the TLS context in force, how many there are, and who hears of those that are
/// refused.
final class ActivationListener: Sendable {
    private struct State {
        var context: NIOSSLContext
        var connections = 0
    }

    let refusals: RefusalDesk
    private let state: Mutex<State>

    init(context: NIOSSLContext, refusals: RefusalDesk) {
        self.refusals = refusals
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
            listener.refusals.noteLimit(channel)
            // Closed once it is set up: who accepted it waits for that.
            channel.eventLoop.execute { channel.close(promise: nil) }
            return base.setup(channel: channel, logger: logger)
        }
        channel.closeFuture.whenComplete { _ in listener.leave() }
        do {
            let pipeline = channel.pipeline.syncOperations
            let tls = NIOSSLServerHandler(context: context)
            try pipeline.addHandler(tls)
            try pipeline.addHandler(ConnectionGuard(configuration, tls, listener.refusals))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Ends a connection whose handshake fails, or that takes too long: in its handshake, in all, or while the service stops.
private final class ConnectionGuard: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let configuration: ActivationConfiguration
    private let tls: NIOSSLServerHandler
    private let refusals: RefusalDesk
    /// Nil once it has ended, one way or the other.
    private var handshake: Scheduled<Void>?
    private var end: Scheduled<Void>?

    init(_ configuration: ActivationConfiguration, _ tls: NIOSSLServerHandler, _ refusals: RefusalDesk) {
        self.configuration = configuration
        self.tls = tls
        self.refusals = refusals
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        let patience = TimeAmount(configuration.handshakeTimeout)
        handshake = context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            self.handshake = nil
            self.refusals.noteSilence(channel)
            channel.close(promise: nil)
        }
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
            handshake = nil
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
            if let handshake {
                handshake.cancel()
                self.handshake = nil
                refusals.noteFailure(error, of: tls, context.channel)
            }
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
