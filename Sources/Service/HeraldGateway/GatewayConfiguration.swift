package import HeraldListener
package import HeraldModel

/// The provider API's settings and limits.
package struct GatewayConfiguration: Sendable {
    /// Address and limits of the listener.
    package var listener: ListenerConfiguration
    /// The environment of clients whose host name implies none (`--environment`).
    package var environment: PushEnvironment
    package var rules = RequestRules()
    package var http2 = HTTP2Limits()
    package var timeouts = ConnectionTimeouts()
    /// Streams advertised to a connection without certificate, until its first valid token.
    ///
    /// 1, as APNs.
    package var streamsBeforeToken = 1
    /// Burst of refused provider tokens on one connection, each different from the last; beyond it Herald closes the
    /// connection.
    ///
    /// A signature check costs 140 µs.
    package var refusedTokens = 200
    /// Refused provider tokens per second after that.
    package var refusedTokensPerSecond = 2
    /// Bytes of unfinished request bodies over all connections.
    ///
    /// Beyond it a connection that holds more than one body drops its bodies and answers those requests with 503. 64 MiB:
    /// 13 connections with 1,000 streams and the longest payload each; normal clients send their requests whole.
    package var unfinishedBodyBytes = 64 * 1024 * 1024
    /// Size of one write, in bytes.
    package var writeBytes = 64 * 1024

    package init(host: String, port: Int, environment: PushEnvironment) {
        listener = ListenerConfiguration(name: "provider API", host: host, port: port)
        listener.portOption = "--api-port"
        listener.speech = "HTTP/2"
        listener.maximumConnections = 10_000
        // One read burst is posted and answered together; buffers grow to this size only under load.
        listener.readBytes = 64 * 1024
        self.environment = environment
    }
}
