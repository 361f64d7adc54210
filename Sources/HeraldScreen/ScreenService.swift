package import HeraldDevice
import HeraldWeb
import Hummingbird
package import Logging
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
    /// Run it as a service: it ends with the group, or throws `WebDoorError` if it cannot listen.
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

    /// Serves until the group stops.
    /// - Throws: `WebDoorError` if it cannot listen.
    package func run() async throws {
        let router = Router(context: BasicRequestContext.self)
        // The headers first: failures have them too.
        router.add(middleware: ScreenHeaders())
        // The agent keeps no log: the answer itself says what failed, to the device's own user.
        router.add(middleware: WebFailures(logger: logger) { WebRefusal(500, "it failed: \($0)") })
        router.add(middleware: ScreenGuard(host: configuration.host))
        ScreenRoutes(configuration: configuration, view: view, clock: clock).add(to: router)
        let place = WebPlace.Address.port(host: configuration.host, port: configuration.port)
        let door = WebDoor(
            WebPlace(door: "screen", place, portOption: "--screen port", hostOption: "--screen-host"),
            router: router,
            server: .plain(idleTimeout: configuration.idleTimeout),
            maximumConnections: configuration.maximumConnections,
            logger: logger,
            isOpen: isOpen
        )
        try await door.run()
    }
}
