import HeraldDoor
package import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
package import NIOSSL

/// The provider API: the service that a command opens, runs and stops.
///
/// 1. ``open()`` listens, so that ports are known before anything is announced.
/// 2. ``run()`` returns when the gateway has stopped: after ``beginShutdown()``, gracefully; when its task is cancelled, at
///    once.
/// 3. ``replaceContext(_:)`` and ``reviewCertificates()`` follow a change of certificates or of a revocation list.
package final class Gateway: Sendable {
    private let service: ProviderService
    private let door: TLSDoor
    private let group: any EventLoopGroup
    private let loops: PerLoop<ProviderLoop<ProviderConnection>>
    private let stopSignal: AsyncStream<Void>
    private let stop: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - configuration: Where to listen, and every limit.
    ///   - group: The event loops of the service.
    ///   - context: TLS: a client certificate is asked for and not demanded, and `h2` is the protocol.
    ///   - admission: Lets providers in.
    ///   - letterBox: Takes their notifications: the post office.
    ///   - channels: Makes channels, and takes broadcasts to them; nil for a gateway that does not broadcast.
    ///   - clock: The service's clock.
    ///   - logger: Gets nothing of payloads, tokens or keys.
    ///   - drills: Bad days on demand; none without.
    package init(
        configuration: GatewayConfiguration,
        group: any EventLoopGroup,
        context: NIOSSLContext,
        admission: Admission,
        letterBox: any LetterBox,
        channels: ChannelOffice? = nil,
        clock: any WallClock,
        logger: Logger,
        drills: DrillDesk? = nil
    ) {
        let service = ProviderService(
            configuration: configuration,
            admission: admission,
            letterBox: letterBox,
            channels: channels,
            clock: clock,
            logger: logger,
            drills: drills ?? DrillDesk(clock: clock, logger: logger),
            rules: LiveRules(configuration.rules),
            bodies: BodyLoad(limit: configuration.unfinishedBodyBytes)
        )
        let loops = PerLoop(group) { ProviderLoop<ProviderConnection>(on: $0) }
        self.service = service
        self.group = group
        self.loops = loops
        let diagnosis: RefusalDesk.Diagnosis = { admission.fault(of: $0, at: clock.now()) }
        door = TLSDoor(
            configuration: configuration.door,
            context: context,
            logger: logger,
            diagnosis: diagnosis
        ) { channel, peer in
            let connection = try Self.connection(service, loops, channel, peer)
            try channel.pipeline.syncOperations.addHandler(connection)
        }
        (stopSignal, stop) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Starts to listen.
    ///
    /// - Returns: The port.
    /// - Throws: `DoorError` if the address is occupied, not this machine's, or not allowed.
    package func open() async throws -> Int {
        try await door.open(on: group)
    }

    /// Waits for the end, and brings it about.
    package func run() async {
        for await _ in stopSignal { break }
        await door.stopListening()
        for loop in loops.all { loop.stop() }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.waitForConnections() }
            let patience = self.service.configuration.timeouts.shutdown + .seconds(2)
            tasks.addTask { try? await Task.sleep(for: patience) }
            await tasks.next()
            tasks.cancelAll()
            // Whatever is left has had its time. Closing it also ends the wait for it.
            await self.door.closeConnections()
        }
    }

    /// Stops gracefully: no new connections, GOAWAY to the old ones, answers to all that is in hand.
    ///
    /// Returns at once; ``run()`` returns when it is done.
    package func beginShutdown() {
        stop.yield()
        stop.finish()
    }

    /// The TLS context for the handshakes from now on; sessions of the former one do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        door.replaceContext(context)
    }

    /// Looks again at the certificates of all open connections; ends those that are good no longer.
    package func reviewCertificates() {
        for loop in loops.all { loop.toEach { $0.reviewCertificate() } }
    }

    /// The rules for requests from now on, on open connections too; the post office's longest storage is asked for again.
    package func replaceRules(_ rules: RequestRules) {
        service.rules.replace(rules)
    }

    /// How many connections there are.
    package var connectionCount: Int { door.connectionCount }

    /// The rules of all doors for providers.
    var rules: LiveRules { service.rules }

    /// A connection for a peer that came by another door and speaks HTTP/2; stopped and reviewed as those of this one.
    ///
    /// On the channel's event loop; the caller puts it into the channel's pipeline.
    ///
    /// - Throws: ``GatewayError``.
    func connection(for peer: HandshakePeer, on channel: any Channel) throws -> ProviderConnection {
        try Self.connection(service, loops, channel, peer)
    }

    private static func connection(
        _ service: ProviderService,
        _ loops: PerLoop<ProviderLoop<ProviderConnection>>,
        _ channel: any Channel,
        _ peer: HandshakePeer
    ) throws -> ProviderConnection {
        guard let loop = loops[channel.eventLoop] else { throw GatewayError.foreignLoop }
        return try ProviderConnection(service: service, loop: loop, peer: peer, now: channel.eventLoop.now)
    }

    private func waitForConnections() async {
        for loop in loops.all { await loop.empty() }
    }
}
