package import Hummingbird
package import HummingbirdCore
package import Logging
import NIOCore
import ServiceLifecycle

/// An HTTP door for people and their tools, as a service.
package struct WebDoor: Service {
    private let place: WebPlace
    private let serve: @Sendable () async throws -> Void

    /// - Parameters:
    ///   - place: Where it listens.
    ///   - router: Whom it asks.
    ///   - server: What a connection is, and its limits.
    ///   - maximumConnections: The most at one time, more wait in the system's queue; nil where `server` sees to it.
    ///   - name: What answers call the server.
    ///   - logger: What is behind the door logs there itself; the door says nothing.
    ///   - isOpen: Told the port once it listens; 0 for a socket.
    package init<Context: RequestContext>(
        _ place: WebPlace,
        router: Router<Context>,
        server: HTTPServerBuilder,
        maximumConnections: Int?,
        name: String = "herald",
        logger: Logger,
        isOpen: @escaping @Sendable (Int) async -> Void
    ) where Context: InitializableFromSource<ApplicationRequestContextSource> {
        self.place = place
        var quiet = logger
        // Hummingbird tells of each start and stop, and calls a stop by cancellation an error; Herald says itself where
        // its doors are, and what failed is thrown.
        quiet.logLevel = .critical
        let application = Application(
            responder: router.buildResponder(),
            server: server,
            configuration: ApplicationConfiguration(
                address: place.bindAddress,
                serverName: name,
                availableConnectionsDelegate: maximumConnections.map { .maximum($0, logger: quiet) }
            ),
            onServerRunning: { channel in await isOpen(channel.localAddress?.port ?? 0) },
            logger: quiet
        )
        serve = { try await application.run() }
    }

    /// Serves until the group stops.
    /// - Throws: ``WebDoorError`` if it cannot listen.
    package func run() async throws {
        do {
            try await serve()
        } catch let error as IOError {
            throw WebDoorError(place, cause: error)
        }
    }
}

extension HTTPServerBuilder {
    /// HTTP/1.1; a connection that is silent for so long, within a request or between two, is closed.
    package static func plain(idleTimeout: Duration) -> HTTPServerBuilder {
        .http1(configuration: HTTP1Channel.Configuration(idleTimeout: TimeAmount(idleTimeout)))
    }
}

extension WebPlace {
    fileprivate var bindAddress: BindAddress {
        switch address {
        case .port(let host, let port): .hostname(host, port: port)
        case .socket(let path): .unixDomainSocket(path: path)
        }
    }
}
