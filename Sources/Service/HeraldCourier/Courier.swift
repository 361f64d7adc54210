package import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import HeraldTrust
import HeraldWire
package import Logging
package import NIOCore
package import NIOSSL

/// Serves devices: MQTT 5 and 3.1.1 over mutual TLS.
///
/// 1. Opens the listener, and identifies each device by its certificate.
/// 2. Puts an ``MQTTConnection`` on each connection, and runs its requests to the registry.
/// 3. Ends connections whose certificate is revoked or has expired.
/// 4. Sends connected devices their new tokens when the token key changes.
/// 5. Stops gracefully: takes no new devices, sends DISCONNECT 0x8B to the connected ones, and then closes.
package final class Courier: Sendable {
    private let configuration: CourierConfiguration
    private let trust: TrustService
    private let clock: any WallClock
    private let logger: Logger
    private let group: any EventLoopGroup
    private let state: CourierState
    private let listener: TLSListener
    private let loops: PerLoop<CourierLoop>
    private let renewals = Signal()
    private let announcements = Signal()
    /// The token key before any device could connect.
    private let firstTokenKey: UInt32

    /// `tls` must require a client certificate.
    package init(
        configuration: CourierConfiguration = CourierConfiguration(),
        listener: ListenerConfiguration,
        tls: NIOSSLContext,
        group: any EventLoopGroup,
        services: CourierServices,
        trust: TrustService,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.trust = trust
        self.clock = clock
        self.logger = logger
        self.group = group
        let limits = CourierLimits(configuration)
        let state = CourierState(services: services, limits: limits, clock: clock, logger: logger)
        let loops = PerLoop(group) { CourierLoop($0) }
        self.state = state
        self.loops = loops
        firstTokenKey = services.tokens.newestKey
        var listener = listener
        listener.expectsIdleConnections = true
        listener.unsentBytes = configuration.outboundBytes
        // A dozen acknowledgements; longer packets come in pieces.
        listener.readBytes = min(listener.readBytes, 512)
        self.listener = TLSListener(
            configuration: listener,
            context: tls,
            refusals: RefusalLog(listener: listener.name, logger: logger) { trust.fault(of: $0, now: clock.now()) }
        ) { channel, peer in
            guard let loop = loops[channel.eventLoop] else { throw CourierRefusal(reason: "unknown event loop") }
            guard let certificate = peer.certificate else { throw CourierRefusal(reason: "no certificate") }
            let identity: DeviceIdentity
            do {
                identity = try trust.device(certificate: certificate, now: clock.now())
            } catch let fault as PeerRefusal {
                throw RefusedConnection(fault) { channel in
                    let handler = RefusedDeviceHandler(fault, configuration)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            let environment = peer.serverName.flatMap { PushEnvironment.named(by: $0) } ?? configuration.environment
            let connection = MQTTConnection(
                identity: identity,
                environment: environment,
                courier: state,
                loop: loop,
                unknown: peer.connection
            )
            try channel.pipeline.syncOperations.addHandler(connection)
        }
    }

    /// Starts to listen.
    /// - Returns: The port.
    /// - Throws: ``HeraldListener/ListenerError`` if it cannot listen on the address.
    package func open() async throws -> Int {
        try await listener.open(on: group)
    }

    /// Runs the requests of connections, until ``stop()`` has ended or the task is cancelled.
    package func run() async {
        await withTaskGroup { group in
            group.addTask { await self.runSweeps() }
            group.addTask { await self.runRenewals() }
            group.addTask { await self.runAnnouncements() }
            await state.requests.run()
            group.cancelAll()
        }
    }

    /// Takes no new connections, sends DISCONNECT to the devices, and closes the connections that stay open.
    package func stop() async {
        await listener.stopListening()
        for link in state.connections.links { link.dismiss(.shuttingDown) }
        await withTaskGroup { group in
            group.addTask { await self.state.connections.untilEmpty() }
            group.addTask { [timeout = configuration.stopTimeout] in try? await Task.sleep(for: timeout) }
            await group.next()
            group.cancelAll()
        }
        await listener.closeConnections()
        state.requests.finish()
    }

    /// The number of connections, those in their handshake included.
    package var connectionCount: Int { listener.connectionCount }

    /// Connections of devices, for the ledger.
    package var sightings: DeviceSightings { state.sightings }

    /// Notes those devices of a part that are connected now; each device is in one of `parts` parts.
    package func noteConnected(part: Int, of parts: Int) { state.noteConnected(part: part, of: parts) }

    /// The devices of a cluster's node that wait for their turn to arrive.
    package var waitingArrivals: Int { state.requests.waitingArrivals }

    /// Replaces the context of the handshakes from now on.
    package func replaceContext(_ context: NIOSSLContext) {
        listener.replaceContext(context)
    }

    /// Replaces the limits that may change while the service runs; the other values of the configuration are ignored.
    package func replaceLimits(_ configuration: CourierConfiguration) {
        state.limits.replace(configuration)
    }

    /// Ends the connections of devices whose certificate is no longer accepted: after every change of revocations.
    package func recheck() {
        let now = clock.now()
        for link in state.connections.links where !trust.isWelcome(link.identity, now: now) {
            logger.notice(
                "device disconnected: its certificate is revoked or has expired",
                metadata: ["device": "\(link.identity.id)"]
            )
            link.dismiss(.revoked)
        }
    }

    /// Sends the broadcasts that Herald withheld after a jump of the clock, once their time is certain.
    package func releaseWithheld() {
        for link in state.connections.links { link.releaseWithheld() }
    }

    /// Sends connected devices their tokens under the newest key, after every change of the token keys.
    ///
    /// Returns at once; the devices get their tokens one after the other.
    package func renewTokens() {
        renewals.send()
    }

    /// Sends connected devices that are subscribed to it what the service announces now.
    ///
    /// Returns at once; the devices get it one after the other.
    package func announce() {
        announcements.send()
    }

    private func runAnnouncements() async {
        for await _ in announcements.stream {
            do { try await eachInTurn(state.connections.links) { $0.announce() } } catch { return }
        }
    }

    private func runRenewals() async {
        var key = firstTokenKey
        for await _ in renewals.stream {
            guard state.services.tokens.newestKey != key else { continue }
            do {
                try await Task.sleep(for: configuration.tokenRenewalDelay)
                // Devices that connect from now on get the newest in any case.
                key = state.services.tokens.newestKey
                try await renewTokens(of: state.connections.links)
            } catch { return }
        }
    }

    private func renewTokens(of links: [MQTTConnectionLink]) async throws {
        try await eachInTurn(links) { $0.renewTokens() }
        logger.info(
            "sent connected devices their tokens under the newest token key",
            metadata: ["connections": "\(links.count)"]
        )
    }

    private func eachInTurn(_ links: [MQTTConnectionLink], _ body: (MQTTConnectionLink) -> Void) async throws {
        let share = max(1, configuration.tokenRenewalsPerSecond / 10)
        for start in stride(from: 0, to: links.count, by: share) {
            if start > 0 { try await Task.sleep(for: .milliseconds(100)) }
            for link in links[start..<min(start + share, links.count)] { body(link) }
        }
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
            recheck()
        }
    }
}

extension Courier: BroadcastOutlet {
    package func send(_ order: BroadcastSend) {
        // Written once for all loops and connections; each loop gets one order.
        var properties = MQTTPropertyBlock()
        let packets = BroadcastPackets(order.broadcast, topic: order.feed.topic, now: clock.now(), &properties)
        order.expect(shares: loops.all.count)
        for loop in loops.all { loop.broadcasts.add(LoopBroadcast(order: order, packets: packets)) }
    }
}

/// A connection that the courier refuses after its handshake.
struct CourierRefusal: Error, CustomStringConvertible {
    let reason: String

    var description: String { reason }
}
