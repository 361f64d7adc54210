package import HeraldDoor
package import HeraldModel

/// The provider API's settings and limits.
package struct GatewayConfiguration: Sendable {
    /// Where it listens.
    package var door: DoorConfiguration
    /// The environment of clients whose name for the service says nothing (`--environment`).
    package var environment: PushEnvironment
    package var rules = RequestRules()
    package var http2 = HTTP2Limits()
    package var timeouts = ConnectionTimeouts()
    /// Streams advertised to a connection that has not shown who it is, until its first valid token.
    ///
    /// 1, as APNs.
    package var streamsBeforeToken = 1
    /// Refused provider tokens on one connection, each another than the last, at once; past it the connection is
    /// closed.
    ///
    /// A check of a signature costs 140 µs.
    package var refusedTokens = 200
    /// Such tokens each second after that.
    package var refusedTokensPerSecond = 2
    /// Bytes of bodies of requests that have not ended, over all connections; past it a connection that holds more than
    /// one body loses what it holds, and answers those requests with 503.
    ///
    /// 64 MiB: what 13 connections can hold at the most, of 1,000 streams with the longest payload each; the honest send
    /// their requests whole.
    package var unfinishedBodyBytes = 64 * 1024 * 1024
    /// Answers of one connection that lie in its buffer before the next piece is written, in bytes.
    package var writeBytes = 64 * 1024

    package init(host: String, port: Int, environment: PushEnvironment) {
        door = DoorConfiguration(name: "provider API", host: host, port: port)
        door.portOption = "--api-port"
        door.maximumConnections = 10_000
        // What comes in one burst is posted and answered together; buffers grow to this only under load.
        door.readBytes = 64 * 1024
        self.environment = environment
    }
}
