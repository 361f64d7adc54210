package import HeraldPhone
import HeraldWeb
import Hummingbird
package import Logging
import ServiceLifecycle

/// The screen of a simulated device, for browsers and for tests with an HTTP client.
///
///     GET  /                                    the page
///     GET  /assets/…                            its files
///     GET  /api/device                          the snapshot
///     GET  /api/events                          a snapshot after each change, as server-sent events
///     POST /api/device                          an action of the user
///     GET  /api/send                            a command line that sends the device a notification
///     GET  /api/shown[?after=REVISION&limit=N]  the newest display records, oldest first
///     GET  /api/shown/<apns-id>[?wait=SECONDS]  the display record of a notification
///     GET  /api/apps/<topic>/icon               the icon of an app
///     GET  /api/apps/<topic>/sounds/<name>      a sound of an app
package struct ScreenService: Service {
    private let configuration: ScreenConfiguration
    private let view: any DeviceView
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let isOpen: @Sendable (Int) async -> Void

    /// Creates the screen of a device.
    ///
    /// `isOpen` gets the port once it listens.
    ///
    /// Run it as a service of a group.
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
    /// - Throws: `WebListenerError` if it cannot listen.
    package func run() async throws {
        let router = Router(context: BasicRequestContext.self)
        // First, so that failures have the headers too.
        router.add(middleware: PageHeaders(policy: ScreenAssets.policy))
        // The agent has no log, so the answer tells the user what failed.
        router.add(middleware: WebFailures(logger: logger) { WebRefusal(500, "the request failed: \($0)") })
        let words = "the screen answers to localhost, to a loopback address, and to the value of --screen-host"
        router.add(middleware: HostCheck(host: configuration.host, answersTo: words))
        router.add(middleware: SiteGuard(protecting: "the device"))
        ScreenRoutes(configuration: configuration, view: view, clock: clock).add(to: router)
        let address = ListenAddress.Address.port(host: configuration.host, port: configuration.port)
        let listener = WebListener(
            ListenAddress(
                listener: "screen",
                address,
                portOption: configuration.portOption,
                hostOption: "--screen-host"
            ),
            router: router,
            server: .http1(
                timeout: configuration.requestTimeout,
                descriptors: configuration.maximumConnections
            ),
            logger: logger,
            isOpen: isOpen
        )
        try await listener.run()
    }
}
