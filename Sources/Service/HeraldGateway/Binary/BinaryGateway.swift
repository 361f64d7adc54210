import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
package import NIOSSL

/// The binary provider interface and its feedback service, which APNs had before HTTP/2.
///
/// 1. ``open()`` opens both listeners, so that the ports are known before anything is announced.
/// 2. ``run()`` returns after ``beginShutdown()`` with a graceful stop, or at once when its task is cancelled. ``close()``
///    then closes what is left; the gateway stops the clients that speak HTTP/2.
/// 3. ``replaceContexts(_:)`` and ``reviewCertificates()`` apply a change of certificates or of a revocation list.
package final class BinaryGateway: Sendable {
    private let service: BinaryService
    private let group: any EventLoopGroup
    private let binaryListener: TLSListener
    private let feedbackListener: TLSListener
    private let binaryLoops: PerLoop<ProviderLoop<BinaryConnection>>
    private let feedbackLoops: PerLoop<ProviderLoop<FeedbackConnection>>
    private let tasks: TaskQueue
    private let stop = Signal()

    /// The TLS contexts of the two listeners: optional client certificate, `h2` offered, TLS 1.2 at most.
    package struct Contexts: Sendable {
        package let binary: NIOSSLContext
        package let feedback: NIOSSLContext

        package init(binary: NIOSSLContext, feedback: NIOSSLContext) {
            self.binary = binary
            self.feedback = feedback
        }
    }

    /// `gateway`, which has the same event loops, takes the connections of clients that speak HTTP/2.
    ///
    /// Without `confirmations`, the node stands alone. The logger gets no payloads, tokens or keys.
    package init(
        binary: BinaryConfiguration,
        feedback: FeedbackConfiguration,
        group: any EventLoopGroup,
        contexts: Contexts,
        admission: Admission,
        sink: any NotificationSink,
        feedbackSource: any FeedbackSource,
        confirmations: RefusalConfirmations? = nil,
        gateway: Gateway,
        clock: any WallClock,
        logger: Logger
    ) {
        let service = BinaryService(
            binary: binary,
            feedback: feedback,
            admission: admission,
            sink: sink,
            feedbackSource: feedbackSource,
            confirmations: confirmations,
            gateway: gateway,
            clock: clock,
            logger: logger
        )
        let binaryLoops = PerLoop(group) { ProviderLoop<BinaryConnection>(on: $0) }
        let feedbackLoops = PerLoop(group) { ProviderLoop<FeedbackConnection>(on: $0) }
        let tasks = TaskQueue()
        self.service = service
        self.group = group
        self.binaryLoops = binaryLoops
        self.feedbackLoops = feedbackLoops
        self.tasks = tasks
        func refusals(_ listener: ListenerConfiguration) -> RefusalLog {
            RefusalLog(listener: listener.name, logger: logger) { admission.fault(of: $0, at: clock.now()) }
        }
        binaryListener = TLSListener(
            configuration: binary.listener,
            context: contexts.binary,
            refusals: refusals(binary.listener)
        ) { channel, peer in
            if peer.negotiatedProtocol == "h2" { return try Self.serveHTTP2(gateway, channel, peer) }
            guard let loop = binaryLoops[channel.eventLoop] else { throw GatewayError.foreignLoop }
            // A client may close its output and still wait for the answer.
            try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
            let now = channel.eventLoop.now
            try channel.addBehindTLS(BinaryConnection(service: service, loop: loop, peer: peer, now: now))
        }
        feedbackListener = TLSListener(
            configuration: feedback.listener,
            context: contexts.feedback,
            refusals: refusals(feedback.listener)
        ) { channel, peer in
            if peer.negotiatedProtocol == "h2" { return try Self.serveHTTP2(gateway, channel, peer) }
            guard let loop = feedbackLoops[channel.eventLoop] else { throw GatewayError.foreignLoop }
            let gate = FeedbackGate()
            let connection = FeedbackConnection(
                service: service,
                loop: loop,
                tasks: tasks,
                gate: gate,
                peer: peer,
                now: channel.eventLoop.now
            )
            try channel.pipeline.syncOperations.addHandler(gate, position: .first)
            try channel.addBehindTLS(connection)
        }
    }

    /// Opens both listeners, and returns their ports.
    ///
    /// - Throws: `ListenerError`.
    package func open() async throws -> (binary: Int, feedback: Int) {
        let binary = try await binaryListener.open(on: group)
        do {
            return (binary, try await feedbackListener.open(on: group))
        } catch {
            await binaryListener.stopListening()
            throw error
        }
    }

    /// Runs until the stop, then stops all connections.
    package func run() async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.tasks.run() }
            for await _ in self.stop.stream { break }
            await self.stopConnections()
            // Confirmed lists are deleted before the store closes.
            self.tasks.finish()
            await tasks.waitForAll()
        }
    }

    private func stopConnections() async {
        await binaryListener.stopListening()
        await feedbackListener.stopListening()
        for loop in binaryLoops.all { loop.stop() }
        for loop in feedbackLoops.all { loop.stop() }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.waitForConnections() }
            let timeout = self.service.binary.shutdown + self.service.binary.stopDrain
            tasks.addTask { try? await Task.sleep(for: timeout) }
            await tasks.next()
            tasks.cancelAll()
            // Connections that are left are overdue. Closing them also ends the wait for them.
            for loop in self.binaryLoops.all { loop.toEach { $0.cutOff() } }
            for loop in self.feedbackLoops.all { loop.toEach { $0.cutOff() } }
        }
    }

    /// Closes all open connections at once.
    package func close() async {
        await binaryListener.closeConnections()
        await feedbackListener.closeConnections()
    }

    /// Begins a graceful stop: no new connections; open ones learn the last accepted notification.
    ///
    /// Returns at once; ``run()`` returns when the stop is complete.
    package func beginShutdown() {
        stop.send()
    }

    /// Sets the TLS contexts of later handshakes; sessions of the old ones do not resume.
    package func replaceContexts(_ contexts: Contexts) {
        binaryListener.replaceContext(contexts.binary)
        feedbackListener.replaceContext(contexts.feedback)
    }

    /// Checks the certificates of all open connections again, and ends those that are no longer valid.
    package func reviewCertificates() {
        for loop in binaryLoops.all { loop.toEach { $0.reviewCertificate() } }
        for loop in feedbackLoops.all { loop.toEach { $0.reviewCertificate() } }
    }

    /// The number of connections, including those that speak HTTP/2.
    package var connectionCount: Int { binaryConnectionCount + feedbackConnectionCount }

    /// The connections of the binary interface.
    package var binaryConnectionCount: Int { binaryListener.connectionCount }

    /// The connections of the feedback service.
    package var feedbackConnectionCount: Int { feedbackListener.connectionCount }

    private func waitForConnections() async {
        for loop in binaryLoops.all { await loop.empty() }
        for loop in feedbackLoops.all { await loop.empty() }
    }

    private static func serveHTTP2(_ gateway: Gateway, _ channel: any Channel, _ peer: HandshakePeer) throws {
        try channel.pipeline.syncOperations.addHandler(try gateway.connection(for: peer, on: channel))
    }
}
