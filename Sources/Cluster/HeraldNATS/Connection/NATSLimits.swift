/// Limits and times of a connection to NATS.
package struct NATSLimits: Hashable, Sendable {
    /// Longest control line, in bytes.
    ///
    /// The server's own default is 4,096; its INFO may be longer.
    package var controlLineBytes = 4096
    /// Longest INFO line, in bytes: a cluster of a hundred servers lists them all.
    package var infoBytes = 65_536
    /// Largest message that is accepted, in bytes of headers and payload; the server's `max_payload` counts if it is less.
    package var messageBytes = 8 << 20
    /// Bytes that wait for the socket; a message beyond it is refused as busy, so that a slow server costs no memory.
    package var pendingBytes = 16 << 20
    /// Requests and JetStream publishes that wait for an answer; one more is refused as busy.
    package var requests = 65_536
    /// Subscriptions of one connection.
    package var subscriptions = 1024
    /// Header bytes of one message that is sent.
    package var headerBytes = 16_384
    /// Bytes of one bounded read (``JetStream/readLast(_:in:atLeast:within:done:)``): what a reader gathers before it answers.
    package var readBytes = 16 << 20
    /// Servers that the cluster announces and the connection remembers, beside the configured ones.
    package var announcedServers = 32
    /// Time for TCP, TLS and authentication with one server.
    package var connectTimeout: Duration = .seconds(5)
    /// The same while a server is left that is of no use, until each has been tried: one of the others may be stopped.
    package var hurriedConnectTimeout: Duration = .seconds(2)
    /// Time between two PINGs.
    package var pingInterval: Duration = .seconds(2)
    /// Unanswered PINGs after which the connection counts as dead.
    package var unansweredPings = 2
    /// Pause after the first round in which no server could be reached; it doubles with each round.
    package var shortestPause: Duration = .milliseconds(50)
    /// Longest pause between two rounds.
    package var longestPause: Duration = .seconds(2)
    /// Longest time that a connection waits for open answers before it leaves a server in lame duck mode.
    package var lameDuckWait: Duration = .seconds(1)
    /// Time after which an ordered consumer's server sends a heartbeat if there is no message.
    package var consumerHeartbeat: Duration = .seconds(1)
    /// Heartbeats that may be missing before an ordered consumer is made anew.
    package var missingHeartbeats = 2
}
