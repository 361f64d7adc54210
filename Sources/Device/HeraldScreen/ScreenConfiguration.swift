/// The address and limits of a device's screen.
package struct ScreenConfiguration: Sendable {
    /// The address to listen on; loopback by default, because everybody who reaches the screen controls the device.
    package var host: String
    /// The port; 0 picks a free one.
    package var port: Int
    /// The option that sets the port, for error messages.
    package var portOption = "--screen port"
    /// The most open connections; further ones wait in the system's queue.
    package var maximumConnections = 64
    /// The most pages that watch the device; each keeps a connection open.
    package var maximumViewers = 24
    /// The most requests that wait for a notification (`/api/shown/…?wait=`).
    package var maximumWaits = 24
    /// The longest wait of such a request.
    package var longestWait: Duration = .seconds(300)
    /// The interval of keep-alive comments to pages that watch.
    package var keepAlive: Duration = .seconds(15)
    /// Time for a silent connection, for the header of a request, and for its body.
    package var requestTimeout: Duration = .seconds(30)
    /// The longest body of a request, in bytes.
    package var maximumBodyBytes = 1 << 16
    /// The most display records of one answer (`/api/shown?limit=`).
    package var maximumRecords = 1000
    /// A command line that sends the device a notification, with `{token}` and `{topic}` where those of an app belong; nil
    /// if none is known.
    package var sendLine: String?

    package init(host: String = "127.0.0.1", port: Int) {
        self.host = host
        self.port = port
    }
}
