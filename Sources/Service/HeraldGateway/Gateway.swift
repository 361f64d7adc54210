import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
package import NIOSSL

/// The provider API: the service of the HTTP/2 listener.
///
/// 1. ``open()`` listens, so that the port is known before anything is announced.
/// 2. ``run()`` returns after ``beginShutdown()`` with a graceful stop, or at once when its task is cancelled.
/// 3. ``replaceContext(_:)`` and ``reviewCertificates()`` apply a change of certificates or of a revocation list.
package final class Gateway: Sendable {
    private let service: ProviderService
    private let listener: TLSListener
    private let group: any EventLoopGroup
    private let loops: PerLoop<ProviderLoop<ProviderConnection>>
    private let stop = Signal()

    /// `context` is TLS with an optional client certificate and the protocol `h2`.
    ///
    /// Without `channels`, broadcasts are refused; without `confirmations`, the node stands alone. `drills` are
    /// failures on demand, and `catcher` keeps payloads for people who test. The logger gets no payloads, tokens or
    /// keys.
    package init(
        configuration: GatewayConfiguration,
        group: any EventLoopGroup,
        context: NIOSSLContext,
        admission: Admission,
        sink: any NotificationSink,
        channels: ChannelService? = nil,
        confirmations: RefusalConfirmations? = nil,
        clock: any WallClock,
        logger: Logger,
        drills: DrillService? = nil,
        catcher: CatchService? = nil
    ) {
        let refusals = RefusalLog(listener: configuration.listener.name, logger: logger) {
            admission.fault(of: $0, at: clock.now())
        }
        let service = ProviderService(
            configuration: configuration,
            admission: admission,
            sink: sink,
            channels: channels,
            confirmations: confirmations,
            clock: clock,
            logger: logger,
            drills: drills ?? DrillService(clock: clock, logger: logger),
            catcher: catcher ?? CatchService(clock: clock, logger: logger),
            rules: ReloadableRules(configuration.rules),
            bodies: BodyMemory(limit: configuration.unfinishedBodyBytes)
        )
        let loops = PerLoop(group) { ProviderLoop<ProviderConnection>(on: $0) }
        self.service = service
        self.group = group
        self.loops = loops
        listener = TLSListener(
            configuration: configuration.listener,
            context: context,
            refusals: refusals
        ) { channel, peer in
            let connection = try Self.connection(for: peer, on: channel, service, loops)
            try channel.pipeline.syncOperations.addHandler(connection)
        }
    }

    /// Starts to listen.
    ///
    /// - Returns: The port.
    /// - Throws: `ListenerError`.
    package func open() async throws -> Int {
        try await listener.open(on: group)
    }

    /// Runs until the stop, then stops all connections.
    package func run() async {
        await withTaskGroup { tasks in
            tasks.addTask {
                await self.service.admission.claimFirstUses(clock: self.service.clock, logger: self.service.logger)
            }
            await self.serve()
            tasks.cancelAll()
        }
    }

    private func serve() async {
        for await _ in stop.stream { break }
        await listener.stopListening()
        for loop in loops.all { loop.stop() }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.waitForConnections() }
            let timeout = self.service.configuration.timeouts.shutdown + .seconds(2)
            tasks.addTask { try? await Task.sleep(for: timeout) }
            await tasks.next()
            tasks.cancelAll()
            // Connections that are left are overdue. Closing them also ends the wait for them.
            await self.listener.closeConnections()
        }
    }

    /// Begins a graceful stop: no new connections, answers to pending requests, then GOAWAY.
    ///
    /// Returns at once; ``run()`` returns when the stop is complete.
    package func beginShutdown() {
        stop.send()
    }

    /// Sets the TLS context of later handshakes; sessions of the old one do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        listener.replaceContext(context)
    }

    /// Checks the certificates of all open connections again, and ends those that are no longer valid.
    package func reviewCertificates() {
        for loop in loops.all { loop.toEach { $0.reviewCertificate() } }
    }

    /// Sets the rules for later requests, also on open connections, which read the maximum storage time again.
    package func replaceRules(_ rules: RequestRules) {
        service.rules.replace(rules)
    }

    package var connectionCount: Int { listener.connectionCount }

    /// The rules of all provider listeners.
    var rules: ReloadableRules { service.rules }
    /// Keeps payloads for people who test.
    var catcher: CatchService { service.catcher }

    /// Makes a connection for a peer of another listener that speaks HTTP/2; the gateway stops and reviews it, too.
    ///
    /// On the channel's event loop; the caller adds it to the channel's pipeline.
    ///
    /// - Throws: ``GatewayError``.
    func connection(for peer: HandshakePeer, on channel: any Channel) throws -> ProviderConnection {
        try Self.connection(for: peer, on: channel, service, loops)
    }

    private static func connection(
        for peer: HandshakePeer,
        on channel: any Channel,
        _ service: ProviderService,
        _ loops: PerLoop<ProviderLoop<ProviderConnection>>
    ) throws -> ProviderConnection {
        guard let loop = loops[channel.eventLoop] else { throw GatewayError.foreignLoop }
        return try ProviderConnection(service: service, loop: loop, peer: peer, now: channel.eventLoop.now)
    }

    private func waitForConnections() async {
        for loop in loops.all { await loop.empty() }
    }
}
