package import HeraldDoor
package import HeraldModel

/// The feedback service's settings and limits.
package struct FeedbackConfiguration: Sendable {
    /// Where it listens.
    package var door: DoorConfiguration
    /// The environment of clients whose name for the service says nothing (`--environment`).
    package var environment: PushEnvironment
    /// The most dead registrations that one connection is told of, in all its topics; the rest comes with the next.
    ///
    /// 100,000: they are held in memory until the reader has them.
    package var recordsPerConnection = 100_000
    /// How many are written at once, before the next are made ready.
    ///
    /// 500: their tokens are sealed on the event loop, some 4 µs each.
    package var recordsPerStep = 500
    /// How long a client that shows a certificate and negotiates nothing may take to begin to speak HTTP/2, before the
    /// list is sent to it.
    ///
    /// 100 ms: "at once", and yet the time in which an HTTP/2 preface follows a handshake.
    package var prefaceWait: Duration = .milliseconds(100)
    /// The same for a client without a certificate, which can be nothing else.
    package var preface: Duration = .seconds(5)
    /// With a step that the reader does not take.
    package var write: Duration = .seconds(30)
    /// From the end of the list to the client's own end, by which it confirms that it has read it.
    package var confirmation: Duration = .seconds(30)

    package init(host: String, port: Int, environment: PushEnvironment) {
        door = DoorConfiguration(name: "feedback service", host: host, port: port)
        door.portOption = "--feedback-port"
        // Each may hold a list.
        door.maximumConnections = 1000
        door.readBytes = 16 * 1024
        self.environment = environment
    }
}
