package import Hummingbird
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP1
import ServiceLifecycle

/// An HTTP listener for operators and their tools, as a service.
package struct WebListener: Service {
    private let address: ListenAddress
    private let serve: @Sendable () async throws -> Void

    /// `name` is the value of the `server` header field, and the logger gets the errors of the requests.
    ///
    /// `isOpen` is called with the port once it listens; 0 for a socket.
    package init<Context: RequestContext>(
        _ address: ListenAddress,
        router: Router<Context>,
        server: WebServer,
        name: String = "herald",
        logger: Logger,
        isOpen: @escaping @Sendable (Int) async -> Void
    ) where Context: InitializableFromSource<ApplicationRequestContextSource> {
        self.address = address
        var quiet = logger
        // Hummingbird logs each start and stop, and logs a stop by cancellation as an error. Herald logs its listeners itself.
        quiet.logLevel = .critical
        let application = Application(
            responder: MethodResponder(base: router.buildResponder()),
            server: server.builder,
            configuration: ApplicationConfiguration(
                address: address.bindAddress,
                serverName: name,
                availableConnectionsDelegate: .maximum(server.descriptors, logger: quiet)
            ),
            onServerRunning: { channel in
                try? await channel.eventLoop.submit {
                    try channel.pipeline.syncOperations.addHandler(AcceptErrors(), position: .first)
                }.get()
                await isOpen(channel.localAddress?.port ?? 0)
            },
            logger: quiet
        )
        serve = { try await application.run() }
    }

    /// Runs until the service group stops.
    /// - Throws: ``WebListenerError`` if it cannot listen.
    package func run() async throws {
        do {
            try await serve()
        } catch let error as IOError {
            throw WebListenerError(address, cause: error)
        } catch let error as SocketAddressError.UnknownHost {
            throw WebListenerError(address, cause: error)
        }
    }
}

/// The protocol of a web listener's connections, and how many there may be.
package struct WebServer {
    let builder: HTTPServerBuilder
    /// Maximum number of open connections; more wait in the system's queue.
    let descriptors: Int

    package init(_ builder: HTTPServerBuilder, descriptors: Int) {
        self.builder = builder
        self.descriptors = descriptors
    }

    /// HTTP/1.1 whose connections have places and time limits (``WebConnection``).
    /// - Parameters:
    ///   - timeout: Time for a silent connection, for a request's header, for its body, and for a client that takes nothing of
    ///     an answer; the handshake of TLS is part of the first header's.
    ///   - descriptors: Maximum number of open connections, at least 4; some are kept for health and metrics.
    ///   - tls: TLS of the connections; nil for plain HTTP.
    ///   - clock: The event loop that measures the time of a request; nil for the connection's own.
    /// - Returns: The server.
    package static func http1(
        timeout: Duration,
        descriptors: Int,
        tls: WebTLS? = nil,
        clock: (any EventLoop)? = nil
    ) -> WebServer {
        let timeout = TimeAmount(timeout)
        let connections = WebConnections(descriptors: descriptors)
        let builder = HTTPServerBuilder { responder in
            let configuration = HTTP1Channel.Configuration(idleTimeout: timeout)
            return PlacedChannel(base: HTTP1Channel(responder: responder, configuration: configuration), tls: tls) {
                WebConnection(patience: timeout, connections: connections, clock: clock)
            }
        }
        return WebServer(builder, descriptors: descriptors)
    }
}

/// HTTP/1.1 with a ``WebConnection``, over TLS or not.
private struct PlacedChannel: HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    let base: HTTP1Channel
    let tls: WebTLS?
    let makeConnection: @Sendable () -> WebConnection
    /// Bytes that the system takes beyond those on their way to the client.
    private static let unsentBytes: ChannelOptions.Types.SocketOption.Value = 64 * 1024

    var responder: HTTPChannelHandler.Responder { base.responder }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        do {
            // Small reads, since all requests in one are parsed at once.
            let options = channel.syncOptions
            try options?.setOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2048, maximum: 4096)
            )
            if channel.remoteAddress?.ipAddress != nil {
                // TCP_NOTSENT_LOWAT, which Glibc's module lacks: the system takes megabytes for a client that reads nothing.
                let option = ChannelOptions.tcpOption(.init(rawValue: 25))
                try options?.setOption(option, value: Self.unsentBytes)
            }
            try tls?.add(to: channel)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return base.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(makeConnection(), position: .after(decoder))
            return value
        }
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Keeps a listener open when a connection cannot be accepted, as with no descriptor left; in the pipeline of its socket.
///
/// Hummingbird would end the listener. It tries again after a pause, since the system reports the same at once otherwise.
private final class AcceptErrors: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(100)

    private var isPaused = false

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isPaused else { return }
        isPaused = true
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.isPaused = false
            context.read()
        }
    }

    func read(context: ChannelHandlerContext) {
        if !isPaused { context.read() }
    }
}

extension ListenAddress {
    fileprivate var bindAddress: BindAddress {
        switch address {
        case .port(let host, let port): .hostname(host, port: port)
        case .socket(let path): .unixDomainSocket(path: path)
        }
    }
}
