package import Logging
package import NIOCore
import Synchronization

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
        /// Answers to requests that nobody waits for any more.
        package var lateAnswers: UInt64 = 0
        /// Messages that were refused because of a limit.
        package var refusedBusy: UInt64 = 0
    }

    package let eventLoop: any EventLoop
    let limits: NATSLimits
    private let shared: SharedOutbox
    private let driver: NIOLoopBoundBox<ConnectionDriver>

    /// Makes a connection on a loop, where all callbacks come; the logger gets a line for each connection and each loss
    /// of one.
    /// - Throws: ``NATSError/Kind/badSetting`` if a setting cannot be used.
    package init(
        _ configuration: NATSConfiguration,
        on eventLoop: any EventLoop,
        logger: Logger,
        onEvent: @escaping @Sendable (Event) -> Void
    ) throws(NATSError) {
        guard !configuration.servers.isEmpty else {
            throw NATSError(.badSetting, "there is no address of a NATS server")
        }
        let usesTLS = configuration.tls != nil || configuration.servers.contains { $0.requiresTLS }
        let tls = usesTLS ? try ClientTLS.context(configuration.tls ?? NATSTLS()) : nil
        self.eventLoop = eventLoop
        limits = configuration.limits
        let shared = SharedOutbox(Outbox(limits: limits, inbox: "_INBOX.\(Self.randomName())"))
        self.shared = shared
        driver = NIOLoopBoundBox.makeBoxSendingValue(
            ConnectionDriver(
                configuration,
                tls: tls,
                shared: shared,
                eventLoop: eventLoop,
                logger: logger,
                onEvent: onEvent
            ),
            eventLoop: eventLoop
        )
    }

    deinit {
        let isClosed = shared.state.withLock {
            if case .down(let error) = $0.state { error.kind == .closed } else { false }
        }
        // Nobody can use the connection any more, so that nothing is left open.
        if !isClosed { eventLoop.execute { [driver] in driver.value.close() } }
    }

    /// A name that nobody guesses: who knows an inbox can read its answers, or write some.
    static func randomName() -> String {
        let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        var random = SystemRandomNumberGenerator()
        let name = (0..<22).map { _ in digits[Int.random(in: digits.indices, using: &random)] }
        return String(decoding: name, as: UTF8.self)
    }

    // MARK: - Connection

    /// Begins to connect.
    ///
    /// It never gives up; ``Event`` says how it goes.
    package func start() {
        eventLoop.execute { self.driver.value.start() }
    }

    /// Closes the connection for good.
    ///
    /// Open requests end: as not sent, or as unknown, with ``NATSError/Kind/closed``.
    package func close() async {
        // An event loop that has shut down has closed its connections.
        try? await eventLoop.submit { self.driver.value.close() }.get()
    }

    /// Closes the connection for good after a time, as ``close()`` does; returns at once.
    package func close(after time: Duration) {
        eventLoop.scheduleTask(in: TimeAmount(time)) { self.driver.value.close() }
    }

    /// Leaves the present server for another one, if there is another: this one is connected, and of no use.
    ///
    /// What waits for an answer ends as lost. Nothing more is logged of connections until ``settle()``.
    /// - Parameter reason: The fault of the server, as the end of a sentence that begins with its address.
    package func leave(_ reason: String) {
        eventLoop.execute { self.driver.value.leave(reason) }
    }

    /// Ends the search that ``leave(_:)`` began: the present server works.
    package func settle() {
        eventLoop.execute { self.driver.value.settle() }
    }

    /// Whether a message can be sent now.
    package var isConnected: Bool {
        shared.state.withLock { if case .up = $0.state { true } else { false } }
    }

    /// The present server's INFO; nil without a connection.
    package var serverInfo: NATSServerInfo? {
        shared.state.withLock { $0.info }
    }

    package var statistics: Statistics {
        shared.state.withLock { $0.statistics }
    }

    // MARK: - Messages

    /// Publishes a message, without an answer: it may be lost.
    /// - Throws: If nothing was sent; see ``NATSError/Kind``.
    package func publish(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        replyTo: String? = nil
    ) throws(NATSError) {
        if let replyTo, !SubjectRules.isSubject(replyTo) {
            throw NATSError(.badMessage, "\"\(replyTo)\" is not a subject of NATS")
        }
        let publish = OutgoingPublish(subject: subject, payload: payload, headers: headers)
        let (error, wakes) = shared.state.withLock { outbox in
            let error = outbox.add(publish, replyTo: replyTo.map { .subject($0) } ?? .none)
            return (error, error == nil && outbox.needsWake())
        }
        if wakes { wake() }
        if let error { throw error }
    }

    /// Publishes a message and waits for one answer.
    ///
    /// `done` is called once, on the loop. The error's kind says whether the message was sent: after
    /// ``NATSError/Kind/timeout`` and ``NATSError/Kind/connectionLost`` somebody may have got it.
    package func request(
        _ payload: ByteBuffer,
        to subject: String,
        headers: NATSHeaders = NATSHeaders(),
        within time: Duration,
        done: @escaping @Sendable (Result<NATSMessage, NATSError>) -> Void
    ) {
        send(OutgoingPublish(subject: subject, payload: payload, headers: headers), .message(done), within: time)
    }

    /// Sends a message, and keeps the request that waits for its answer.
    func send(_ publish: OutgoingPublish, _ request: Request, within time: Duration) {
        let now = NIODeadline.now()
        let deadline = now + TimeAmount(time)
        let wakes = shared.state.withLock { outbox in
            outbox.add(
                publish,
                request,
                now: now.uptimeNanoseconds,
                deadline: deadline.uptimeNanoseconds
            )
            return outbox.needsWake()
        }
        if wakes { wake() }
    }

    /// Ends a request that cannot be written, on the loop.
    func refuse(_ request: Request, _ error: NATSError) {
        let wakes = shared.state.withLock { outbox in
            outbox.refuse(request, error)
            return outbox.needsWake()
        }
        if wakes { wake() }
    }

    private func wake() {
        eventLoop.execute { self.driver.value.flush() }
    }

    // MARK: - Subscriptions

    /// Subscribes to a subject, which may have wildcards (`*`, `>`); messages come on the loop, in their order.
    /// - Throws: ``NATSError/Kind/badMessage`` for a subject that is none, ``NATSError/Kind/busy`` at the limit.
    package func subscribe(
        to subject: String,
        onMessage: @escaping @Sendable (NATSMessage) -> Void
    ) throws(NATSError) -> Subscription {
        let subscriber = Outbox.Subscriber(subject: subject, onMessage: onMessage)
        let result = shared.state.withLock { outbox in
            Result<(UInt64, Bool), NATSError> { () throws(NATSError) in
                (try outbox.subscribe(subscriber), outbox.needsWake())
            }
        }
        let (number, wakes) = try result.get()
        if wakes { wake() }
        return Subscription(number: number)
    }

    /// Ends a subscription.
    ///
    /// On the loop, no message of it comes after this call.
    package func unsubscribe(_ subscription: Subscription) {
        let wakes = shared.state.withLock { outbox in
            outbox.unsubscribe(subscription.number)
            return outbox.needsWake()
        }
        if wakes { wake() }
    }
}
