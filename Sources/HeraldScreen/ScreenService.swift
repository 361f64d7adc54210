package import HeraldDevice
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import ServiceLifecycle

/// A device's screen, for people with a browser and for tests with an HTTP client.
///
///     GET  /                                  the page
///     GET  /assets/…                          what it is made of
///     GET  /api/device                        how the device looks
///     GET  /api/events                        the same whenever it changes, as server-sent events
///     POST /api/device                        what the user does
///     GET  /api/saw/<apns-id>[?wait=SECONDS]  what the user saw of a notification
///     GET  /api/apps/<topic>/icon             the app's icon
///     GET  /api/apps/<topic>/sounds/<name>    one of its sounds
package struct ScreenService: Service {
    private let configuration: ScreenConfiguration
    private let view: any DeviceView
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let isOpen: @Sendable (Int) async -> Void

    /// The screen of one device; `isOpen` is told the port once it listens.
    ///
    /// Run it as a service: it ends with the group, or throws ``ScreenError`` if it cannot listen.
    package init(
        configuration: ScreenConfiguration,
        view: any DeviceView,
        logger: Logger,
        clock: any Clock<Duration> = ContinuousClock(),
        isOpen: @escaping @Sendable (Int) async -> Void
    ) {
        self.configuration = configuration
        self.view = view
        self.logger = logger
        self.clock = clock
        self.isOpen = isOpen
    }

    package func run() async throws {
        do {
            try await application().run()
        } catch let error as IOError {
            throw ScreenError(cannotListen: "\(configuration.host):\(configuration.port)", cause: error)
        }
    }

    private func application() -> Application<RouterResponder<BasicRequestContext>> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: ScreenFailures(logger: logger))
        router.add(middleware: ScreenGuard(host: configuration.host))
        ScreenRoutes(configuration: configuration, view: view, clock: clock).add(to: router)
        var quiet = logger
        // Hummingbird tells of each start and stop, and calls a stop by cancellation an error; the agent says itself where
        // its screen is, and what failed is thrown.
        quiet.logLevel = .critical
        let port = configuration.port
        let isOpen = isOpen
        return Application(
            responder: router.buildResponder(),
            server: .http1(
                configuration: HTTP1Channel.Configuration(idleTimeout: TimeAmount(configuration.idleTimeout))
            ),
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.host, port: port),
                serverName: "herald",
                availableConnectionsDelegate: .maximum(configuration.maximumConnections, logger: quiet)
            ),
            onServerRunning: { channel in await isOpen(channel.localAddress?.port ?? port) },
            logger: quiet
        )
    }
}
