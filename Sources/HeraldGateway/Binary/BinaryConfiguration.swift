package import HeraldDoor
package import HeraldModel

/// The binary interface's settings and limits.
package struct BinaryConfiguration: Sendable {
    /// Where it listens.
    package var door: DoorConfiguration
    /// The environment of clients whose name for the service says nothing (`--environment`).
    package var environment: PushEnvironment
    /// The longest payload, in bytes: 2,048 since iOS 8, 256 before.
    package var payloadBytes = 2048
    /// The longest frame that is waited for, in bytes.
    ///
    /// A payload item of the greatest length that can be written, and all others: so a payload that is too long gets its
    /// own status, with the identifier that may stand behind it.
    package var frameBytes = 68 * 1024
    /// Notifications of one connection that the post office may have in hand; past it nothing is read.
    ///
    /// 1,000, as the streams of an HTTP/2 connection.
    package var notificationsInHand = 1000
    /// From the end of the handshake to the first byte, for a client without a certificate, which can only be one that
    /// speaks HTTP/2.
    package var preface: Duration = .seconds(5)
    /// From the first byte of a notification to its last.
    ///
    /// 10 s: a notification fits two packets.
    package var frameTimeout: Duration = .seconds(10)
    /// Without a byte from the client.
    ///
    /// 75 minutes, as HTTP/2 connections.
    package var idle: Duration = .seconds(75 * 60)
    /// How long what a client still sends after an error response is read and dropped.
    ///
    /// Closing at once would reset the connection, and a reset takes with it the error response that the client has not
    /// read yet. 5 s.
    package var drainTimeout: Duration = .seconds(5)
    /// The same while the service stops: 1 s.
    package var stopDrain: Duration = .seconds(1)
    /// How much of it, in bytes.
    package var drainBytes = 64 * 1024 * 1024
    /// From the word to stop to the end of the connection, whatever is in hand.
    ///
    /// 8 s.
    package var shutdown: Duration = .seconds(8)

    package init(host: String, port: Int, environment: PushEnvironment) {
        door = DoorConfiguration(name: "binary interface", host: host, port: port)
        door.portOption = "--binary-port"
        door.maximumConnections = 10_000
        door.readBytes = 64 * 1024
        self.environment = environment
    }
}
