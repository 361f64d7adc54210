package import HeraldListener
package import HeraldModel

/// The feedback service's settings and limits.
package struct FeedbackConfiguration: Sendable {
    /// Address and limits of the listener.
    package var listener: ListenerConfiguration
    /// The environment of clients whose host name implies none (`--environment`).
    package var environment: PushEnvironment
    /// Maximum records for one connection, over all its topics; the next connection gets the rest.
    ///
    /// 100,000: they stay in memory until the reader confirms them.
    package var recordsPerConnection = 100_000
    /// Records per write.
    ///
    /// 500: the event loop seals their tokens, at some 4 µs each.
    package var recordsPerStep = 500
    /// How long to wait for an HTTP/2 preface of a client with a certificate and without ALPN, before sending the list.
    ///
    /// 100 ms: an HTTP/2 preface follows the handshake within that time.
    package var prefaceWait: Duration = .milliseconds(100)
    /// How long to wait for the preface of a client without a certificate, which can only speak HTTP/2.
    package var preface: Duration = .seconds(5)
    /// With one unread write.
    package var write: Duration = .seconds(30)
    /// From the end of the list to the client's FIN, which confirms it.
    package var confirmation: Duration = .seconds(30)

    package init(host: String, port: Int, environment: PushEnvironment) {
        listener = ListenerConfiguration(name: "feedback service", host: host, port: port)
        listener.portOption = "--feedback-port"
        listener.speech = "APNs' feedback protocol"
        listener.isClientFirst = false
        // Each may hold a list in memory.
        listener.maximumConnections = 1000
        listener.readBytes = 16 * 1024
        self.environment = environment
    }
}
