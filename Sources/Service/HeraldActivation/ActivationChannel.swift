import HeraldListener
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// State that all connections of the listener share: TLS context, and control of connections.
final class ActivationListener: Sendable {
    let control: ConnectionControl
    private let current: Mutex<NIOSSLContext>

    init(context: NIOSSLContext, control: ConnectionControl) {
        self.control = control
        current = Mutex(context)
    }

    var context: NIOSSLContext { current.withLock { $0 } }

    func replaceContext(_ context: NIOSSLContext) {
        current.withLock { $0 = context }
    }
}

/// One connection: TLS with the current context, time limits, and Hummingbird's HTTP/1.1.
struct ActivationChannel: HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    let base: HTTP1Channel
    let listener: ActivationListener
    let configuration: ActivationConfiguration

    var responder: HTTPChannelHandler.Responder { base.responder }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        do {
            guard let connection = try listener.control.admit(channel) else {
                // Closes after the setup, for which the acceptor waits.
                channel.eventLoop.execute { channel.close(promise: nil) }
                return base.setup(channel: channel, logger: logger)
            }
            let pipeline = channel.pipeline.syncOperations
            let nameReader = connection.makeNameReader(on: channel.eventLoop)
            let tls = NIOSSLServerHandler(context: listener.context)
            try pipeline.addHandler(nameReader)
            try pipeline.addHandler(tls)
            try pipeline.addHandler(
                ConnectionGuard(
                    connection,
                    configuration: configuration,
                    tls: tls,
                    nameReader: nameReader,
                    refusals: listener.control.refusals
                )
            )
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Closes a connection when its handshake fails or takes too long, at its maximum age, and when the service stops.
final class ConnectionGuard: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let admitted: AdmittedConnection
    private let configuration: ActivationConfiguration
    private let tls: NIOSSLServerHandler
    private let nameReader: ServerNameReader
    private let refusals: RefusalLog
    /// Time limit of the handshake; nil once that has ended.
    private var handshake: Scheduled<Void>?
    private var end: Scheduled<Void>?

    init(
        _ admitted: AdmittedConnection,
        configuration: ActivationConfiguration,
        tls: NIOSSLServerHandler,
        nameReader: ServerNameReader,
        refusals: RefusalLog
    ) {
        self.admitted = admitted
        self.configuration = configuration
        self.tls = tls
        self.nameReader = nameReader
        self.refusals = refusals
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        let patience = TimeAmount(configuration.listener.handshakeTimeout)
        handshake = context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            self.handshake = nil
            self.refusals.noteTimeout(channel)
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
            context.pipeline.syncOperations.removeHandler(nameReader, promise: nil)
        case is PlainConnection:
            handshake?.cancel()
            handshake = nil
            refusals.notePlain(context.channel)
        case is ChannelShouldQuiesceEvent:
            end?.cancel()
            end = close(context, in: configuration.shutdownTimeout)
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The TLS handshake failed, and BoringSSL has sent its alert.
        if error is NIOSSLError {
            if let handshake {
                handshake.cancel()
                self.handshake = nil
                refusals.noteFailure(error, of: tls, alert: nameReader.alert, context.channel)
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
