import HeraldDoor
import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
package import NIOSSL

/// The binary provider interface and its feedback service: the doors that APNs had before HTTP/2.
///
/// 1. ``open()`` listens at both, so that ports are known before anything is announced.
/// 2. ``run()`` returns when both have stopped: after ``beginShutdown()``, gracefully; when its task is cancelled, at once.
///    ``close()`` ends what is left then: clients that speak HTTP/2 are the gateway's to stop.
/// 3. ``replaceContexts(binary:feedback:)`` and ``reviewCertificates()`` follow a change of certificates or of a
///    revocation list.
package final class BinaryGateway: Sendable {
    private let service: BinaryService
    private let group: any EventLoopGroup
    private let binaryDoor: TLSDoor
    private let feedbackDoor: TLSDoor
    private let binaryLoops: PerLoop<ProviderLoop<BinaryConnection>>
    private let feedbackLoops: PerLoop<ProviderLoop<FeedbackConnection>>
    private let errands: Errands
    private let stopSignal: AsyncStream<Void>
    private let stop: AsyncStream<Void>.Continuation

    /// The TLS contexts of the two doors: a client certificate is asked for and not demanded, `h2` is offered, and TLS 1.2
    /// is the newest.
    package struct Contexts: Sendable {
        package let binary: NIOSSLContext
        package let feedback: NIOSSLContext

        package init(binary: NIOSSLContext, feedback: NIOSSLContext) {
            self.binary = binary
            self.feedback = feedback
        }
    }

    /// - Parameters:
    ///   - binary: Where the interface listens, and every limit.
    ///   - feedback: The same of the feedback service.
    ///   - group: The event loops of the service, the same as the gateway's.
    ///   - contexts: TLS.
    ///   - admission: Lets providers in.
    ///   - letterBox: Takes their notifications: the post office.
    ///   - book: Knows which tokens died: the registry.
    ///   - gateway: Takes the connections of clients that speak HTTP/2.
    ///   - clock: The service's clock.
    ///   - logger: Gets nothing of payloads, tokens or keys.
    package init(
        binary: BinaryConfiguration,
        feedback: FeedbackConfiguration,
        group: any EventLoopGroup,
        contexts: Contexts,
        admission: Admission,
        letterBox: any LetterBox,
        book: any FeedbackBook,
        gateway: Gateway,
        clock: any WallClock,
        logger: Logger
    ) {
        let service = BinaryService(
            binary: binary,
            feedback: feedback,
            admission: admission,
            letterBox: letterBox,
            book: book,
            gateway: gateway,
            clock: clock,
            logger: logger
        )
        let binaryLoops = PerLoop(group) { ProviderLoop<BinaryConnection>(on: $0) }
        let feedbackLoops = PerLoop(group) { ProviderLoop<FeedbackConnection>(on: $0) }
        let errands = Errands()
        self.service = service
        self.group = group
        self.binaryLoops = binaryLoops
        self.feedbackLoops = feedbackLoops
        self.errands = errands
        let diagnosis: RefusalDesk.Diagnosis = { admission.fault(of: $0, at: clock.now()) }
        binaryDoor = TLSDoor(
            configuration: binary.door,
            context: contexts.binary,
            logger: logger,
            diagnosis: diagnosis
        ) { channel, peer in
            if peer.negotiatedProtocol == "h2" { return try Self.serveHTTP2(gateway, channel, peer) }
            guard let loop = binaryLoops[channel.eventLoop] else { throw GatewayError.foreignLoop }
            // A client may end its side and still wait for the answer.
            try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
            let now = channel.eventLoop.now
            try Self.add(BinaryConnection(service: service, loop: loop, peer: peer, now: now), channel)
        }
        feedbackDoor = TLSDoor(
            configuration: feedback.door,
            context: contexts.feedback,
            logger: logger,
            diagnosis: diagnosis
        ) { channel, peer in
            if peer.negotiatedProtocol == "h2" { return try Self.serveHTTP2(gateway, channel, peer) }
            guard let loop = feedbackLoops[channel.eventLoop] else { throw GatewayError.foreignLoop }
            let gate = FeedbackGate()
            let connection = FeedbackConnection(
                service: service,
                loop: loop,
                errands: errands,
                gate: gate,
                peer: peer,
                now: channel.eventLoop.now
            )
            try channel.pipeline.syncOperations.addHandler(gate, position: .first)
            try Self.add(connection, channel)
        }
        (stopSignal, stop) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Starts to listen at both doors.
    ///
    /// - Returns: The ports.
    /// - Throws: `DoorError` if an address is occupied, not this machine's, or not allowed.
    package func open() async throws -> (binary: Int, feedback: Int) {
        let binary = try await binaryDoor.open(on: group)
        do {
            return (binary, try await feedbackDoor.open(on: group))
        } catch {
            await binaryDoor.stopListening()
            throw error
        }
    }

    /// Waits for the end, and brings it about.
    package func run() async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.errands.run() }
            for await _ in self.stopSignal { break }
            await self.stopConnections()
            // What is confirmed is forgotten before the store closes.
            self.errands.finish()
            await tasks.waitForAll()
        }
    }

    private func stopConnections() async {
        await binaryDoor.stopListening()
        await feedbackDoor.stopListening()
        for loop in binaryLoops.all { loop.stop() }
        for loop in feedbackLoops.all { loop.stop() }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.waitForConnections() }
            let patience = self.service.binary.shutdown + self.service.binary.stopDrain
            tasks.addTask { try? await Task.sleep(for: patience) }
            await tasks.next()
            tasks.cancelAll()
            // Whatever is left has had its time. Closing it also ends the wait for it.
            for loop in self.binaryLoops.all { loop.toEach { $0.cutOff() } }
            for loop in self.feedbackLoops.all { loop.toEach { $0.cutOff() } }
        }
    }

    /// Closes what is left, without ceremony.
    package func close() async {
        await binaryDoor.closeConnections()
        await feedbackDoor.closeConnections()
    }

    /// Stops gracefully: no new connections, the last accepted notification to the old ones.
    ///
    /// Returns at once; ``run()`` returns when it is done.
    package func beginShutdown() {
        stop.yield()
        stop.finish()
    }

    /// The TLS contexts for the handshakes from now on; sessions of the former ones do not resume.
    package func replaceContexts(_ contexts: Contexts) {
        binaryDoor.replaceContext(contexts.binary)
        feedbackDoor.replaceContext(contexts.feedback)
    }

    /// Looks again at the certificates of all open connections; ends those that are good no longer.
    package func reviewCertificates() {
        for loop in binaryLoops.all { loop.toEach { $0.reviewCertificate() } }
        for loop in feedbackLoops.all { loop.toEach { $0.reviewCertificate() } }
    }

    /// How many connections there are, those that speak HTTP/2 included.
    package var connectionCount: Int { binaryDoor.connectionCount + feedbackDoor.connectionCount }

    private func waitForConnections() async {
        for loop in binaryLoops.all { await loop.empty() }
        for loop in feedbackLoops.all { await loop.empty() }
    }

    private static func serveHTTP2(_ gateway: Gateway, _ channel: any Channel, _ peer: HandshakePeer) throws {
        try channel.pipeline.syncOperations.addHandler(try gateway.connection(for: peer, on: channel))
    }

    /// Right behind TLS, so that the connection hears how its peer went.
    private static func add(_ handler: some ChannelHandler, _ channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let tls = try pipeline.handler(type: NIOSSLServerHandler.self)
        try pipeline.addHandler(handler, position: .after(tls))
    }
}
