package import HeraldWeb

/// Addresses and limits of the console.
package struct ConsoleConfiguration: Sendable {
    /// Address to listen on; loopback by default.
    package var host: String
    /// Further names that requests may have as `Host`.
    package var hostnames: [String] = []
    /// Whether an IP address is that of a proxy whose fields `X-Forwarded-…` count.
    package var isProxy: @Sendable (String) -> Bool = { _ in false }
    /// 0 picks a free port.
    package var port: Int
    /// Path of the control socket, in a folder for the operator only.
    package var socketPath: String
    package var mode = ConsoleMode.full
    /// The least role that starts and stops drills.
    package var drillsRole = ConsoleRole.admin
    /// TLS of the port; nil for plain HTTP.
    package var tls: WebTLS?
    /// Maximum number of connections of each listener; more wait in the system's queue.
    package var maximumConnections = 128
    /// Time for a silent connection, for the header of a request, and for its body.
    package var requestTimeout: Duration = .seconds(30)

    package init(host: String, port: Int, socketPath: String) {
        self.host = host
        self.port = port
        self.socketPath = socketPath
    }
}
