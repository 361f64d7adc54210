package import Hummingbird
package import HummingbirdCore
package import Logging
package import NIOCore
import ServiceLifecycle

/// An HTTP listener for operators and their tools, as a service.
package struct WebListener: Service {
    private let address: ListenAddress
    private let serve: @Sendable () async throws -> Void

    /// - Parameters:
    ///   - address: Where to listen.
    ///   - router: Answers the requests.
    ///   - server: Protocol and limits of a connection.
    ///   - maximumConnections: Maximum number of connections, more wait in the system's queue; nil if `server` limits them.
    ///   - name: Value of the `server` header field.
    ///   - logger: For errors of the requests.
    ///   - isOpen: Called with the port once it listens; 0 for a socket.
    package init<Context: RequestContext>(
        _ address: ListenAddress,
        router: Router<Context>,
        server: HTTPServerBuilder,
        maximumConnections: Int?,
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
            server: server,
            configuration: ApplicationConfiguration(
                address: address.bindAddress,
                serverName: name,
                availableConnectionsDelegate: maximumConnections.map { .maximum($0, logger: quiet) }
            ),
            onServerRunning: { channel in await isOpen(channel.localAddress?.port ?? 0) },
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

extension HTTPServerBuilder {
    /// HTTP/1.1 that closes a connection after `timeout` without bytes, and one whose client takes longer over the header
    /// or the body of a request.
    /// - Parameters:
    ///   - timeout: The time; the handshake of TLS is part of the first header's.
    ///   - tls: TLS of the connections; nil for plain HTTP.
    ///   - clock: The event loop that measures the time of a request; nil for the connection's own.
    /// - Returns: The server.
    package static func http1(
        timeout: Duration,
        tls: WebTLS? = nil,
        clock: (any EventLoop)? = nil
    ) -> HTTPServerBuilder {
        let timeout = TimeAmount(timeout)
        return HTTPServerBuilder { responder in
            let configuration = HTTP1Channel.Configuration(idleTimeout: timeout)
            return TimedChannel(
                base: HTTP1Channel(responder: responder, configuration: configuration),
                tls: tls,
                timeout: timeout,
                clock: clock
            )
        }
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
