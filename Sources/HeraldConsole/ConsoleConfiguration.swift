/// Where the console listens, and its limits.
package struct ConsoleConfiguration: Sendable {
    /// Loopback unless the operator says otherwise: what the console serves is for operators.
    package var host: String
    /// 0 picks a free port.
    package var port: Int
    /// The path of the control socket; its folder is the operator's alone.
    package var socketPath: String
    /// The bearer token of the admin API on ``port``.
    package var token: String
    /// The most connections of each door at one time; more wait in the system's queue.
    package var maximumConnections = 128
    /// How long a connection may be silent, within a request or between two.
    package var idleTimeout: Duration = .seconds(30)

    package init(host: String, port: Int, socketPath: String, token: String) {
        self.host = host
        self.port = port
        self.socketPath = socketPath
        self.token = token
    }
}
