package import HeraldListener
package import HeraldModel

/// The binary interface's settings and limits.
package struct BinaryConfiguration: Sendable {
    /// Address and limits of the listener.
    package var listener: ListenerConfiguration
    /// The environment of clients whose host name implies none (`--environment`).
    package var environment: PushEnvironment
    /// Maximum payload in bytes: 2,048 since iOS 8, 256 before.
    package var payloadBytes = 2048
    /// Maximum frame in bytes.
    ///
    /// It holds the longest payload item that can be written and all other items. So a payload that is too long gets its
    /// own status, with the identifier that may follow it in the frame.
    package var frameBytes = 68 * 1024
    /// Maximum notifications in flight on one connection; at the limit Herald stops reading.
    ///
    /// 1,000, as the streams of an HTTP/2 connection.
    package var notificationsInHand = 1000
    /// From the end of the handshake to the first byte, for a client without a certificate; it can only speak HTTP/2.
    package var preface: Duration = .seconds(5)
    /// From the first byte of a notification to its last.
    ///
    /// 10 s: a notification fits two packets.
    package var frameTimeout: Duration = .seconds(10)
    /// Without a byte from the client.
    ///
    /// 75 minutes, as HTTP/2 connections.
    package var idle: Duration = .seconds(75 * 60)
    /// How long Herald reads and drops what a client sends after an error response.
    ///
    /// Closing at once would reset the connection, and the client might lose the error response. 5 s.
    package var drainTimeout: Duration = .seconds(5)
    /// ``drainTimeout`` while the service stops: 1 s.
    package var stopDrain: Duration = .seconds(1)
    /// Maximum bytes that Herald reads and drops.
    package var drainBytes = 64 * 1024 * 1024
    /// From the stop of the service to the end of the connection, even with notifications in flight.
    ///
    /// 8 s.
    package var shutdown: Duration = .seconds(8)

    package init(host: String, port: Int, environment: PushEnvironment) {
        listener = ListenerConfiguration(name: "binary interface", host: host, port: port)
        listener.portOption = "--binary-port"
        listener.speech = "APNs' binary protocol"
        listener.maximumConnections = 10_000
        listener.readBytes = 64 * 1024
        self.environment = environment
    }
}
