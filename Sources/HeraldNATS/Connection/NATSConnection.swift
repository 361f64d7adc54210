package import Logging
package import NIOCore

/// Connection to a cluster of NATS servers, which it keeps up: one server at a time, another one if that is lost, without end.
///
/// Callable from any thread. Callbacks come on ``eventLoop``, and must not block it. Nothing is kept for a server that is not
/// there: without a connection, or at a limit, a message is refused at once. Subscriptions survive a change of the server.
package final class NATSConnection: Sendable {
    /// Changes of the connection, in their order.
    package enum Event: Hashable, Sendable {
        /// A server has accepted the credential; messages can be sent.
        case connected(NATSServerInfo)
        /// The server is gone, or refused; the connection tries the next one. Comes once for each attempt that failed.
        case disconnected(NATSError)
        /// The server will shut down. The connection leaves it by itself if it knows another one.
        case lameDuck
    }

    /// Subscription of a connection, until ``NATSConnection/unsubscribe(_:)``.
    package struct Subscription: Hashable, Sendable {
        let number: UInt64
    }

    /// Counts since the connection was made.
    package struct Statistics: Hashable, Sendable {
        package var connects: UInt64 = 0
        package var messagesSent: UInt64 = 0
        package var bytesSent: UInt64 = 0
        package var messagesReceived: UInt64 = 0
        package var bytesReceived: UInt64 = 0
        /// Answers to requests that nobody waits for any more.
        package var lateAnswers: UInt64 = 0
        /// Messages that were refused because of a limit.
        package var refusedBusy: UInt64 = 0
    }

    package let eventLoop: any EventLoop

    /// - Parameters:
    ///   - configuration: Servers, credential, TLS and limits.
    ///   - eventLoop: The loop of the connection and of all its callbacks.
    ///   - onEvent: Called on the loop.
    /// - Throws: ``NATSError/Kind/badSetting`` if a setting cannot be used.
    package init(
        _ configuration: NATSConfiguration,
        on eventLoop: any EventLoop,
        logger: Logger,
        onEvent: @escaping @Sendable (Event) -> Void
    ) throws(NATSError) {
        self.eventLoop = eventLoop
    }

    /// Begins to connect. It never gives up; ``Event`` says how it goes.
    package func start() {}

    /// Closes the connection for good. Open requests end: with ``NATSError/Kind/closed`` if they were not sent.
    package func close() async {}

    /// Whether a message can be sent now.
    package var isConnected: Bool { false }

    /// The present server's INFO; nil without a connection.
    package var serverInfo: NATSServerInfo? { nil }

    package var statistics: Statistics { Statistics() }

    /// Publishes a message, without an answer: it may be lost.
    /// - Throws: If nothing was sent; see ``NATSError/Kind``.
    package func publish(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        replyTo: String? = nil
    ) throws(NATSError) {
        throw .notConnected
    }

    /// Publishes a message and waits for one answer.
    /// - Parameters:
    ///   - time: Time for the answer.
    ///   - done: Called once, on the loop. The error's kind says whether the message was sent: after ``NATSError/Kind/timeout``,
    ///     ``NATSError/Kind/connectionLost`` and ``NATSError/Kind/unreadableAnswer`` somebody may have got it.
    package func request(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        within time: Duration,
        done: @escaping @Sendable (Result<NATSMessage, NATSError>) -> Void
    ) {
        eventLoop.execute { done(.failure(.notConnected)) }
    }

    /// Subscribes to a subject, which may have wildcards (`*`, `>`).
    /// - Parameter onMessage: Called on the loop for each message, in their order.
    /// - Throws: ``NATSError/Kind/badMessage`` for a subject that is none, ``NATSError/Kind/busy`` at the limit.
    package func subscribe(
        to subject: String,
        onMessage: @escaping @Sendable (NATSMessage) -> Void
    ) throws(NATSError) -> Subscription {
        throw .notConnected
    }

    /// Ends a subscription. On the loop, no message of it comes after this call.
    package func unsubscribe(_ subscription: Subscription) {}
}
