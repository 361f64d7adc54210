/// Where a device's screen is served, and its limits.
package struct ScreenConfiguration: Sendable {
    /// The address to listen on.
    ///
    /// Loopback unless the user says otherwise: whoever reaches the screen uses the device.
    package var host: String
    /// 0 picks a free port.
    package var port: Int
    /// The most connections at one time; more wait in the system's queue.
    package var maximumConnections = 64
    /// The most pages that watch the device at one time; each holds a connection.
    package var maximumViewers = 24
    /// The most requests at one time that wait for a notification (`/api/saw/…?wait=`).
    package var maximumWaits = 24
    /// The longest that such a request waits.
    package var longestWait: Duration = .seconds(300)
    /// How often a page that nothing is sent to is sent a comment, so that nobody between takes it for dead.
    package var keepAlive: Duration = .seconds(15)
    /// How long a connection may be silent, within a request or between two.
    package var idleTimeout: Duration = .seconds(30)
    /// The longest body of a request, in bytes.
    package var maximumBodyBytes = 1 << 16

    package init(host: String = "127.0.0.1", port: Int) {
        self.host = host
        self.port = port
    }
}
