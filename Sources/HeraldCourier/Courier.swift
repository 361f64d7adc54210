package import HeraldDoor
package import HeraldMailbox
package import HeraldModel
import HeraldTrust
import HeraldWire
package import Logging
package import NIOCore
package import NIOSSL
import Synchronization

/// Where devices hang on: MQTT 5 and 3.1.1 over mutual TLS.
///
/// 1. Opens the door, and decides by the certificate of every handshake who has come.
/// 2. Puts a ``SessionHandler`` on each connection, and runs what sessions ask of the registry.
/// 3. Ends connections whose certificate is revoked or has expired.
/// 4. Sends those that are connected their new tokens when the token key changes.
/// 5. Stops gracefully: no new devices, DISCONNECT 0x8B to those that are there, then the end.
package final class Courier: Sendable {
    private let configuration: CourierConfiguration
    private let trust: any DeviceTrust
    private let clock: any WallClock
    private let logger: Logger
    private let group: any EventLoopGroup
    private let clerk: SessionClerk
    private let door: TLSDoor
    private let loops: PerLoop<CourierLoop>
    private let renewals: AsyncStream<Void>
    private let renewal: AsyncStream<Void>.Continuation
    /// Before anybody could connect.
    private let firstTokenKey: UInt32

    /// - Parameters:
    ///   - configuration: The limits of sessions.
    ///   - door: Where to listen.
    ///   - tls: What to show and demand in handshakes; a client certificate is to be required.
    ///   - group: The event loops on which connections live.
    ///   - office: The rest of the service.
    ///   - trust: Who is a device.
    ///   - clock: The service's clock.
    ///   - logger: Where to say what an operator may want to know.
    package init(
        configuration: CourierConfiguration = CourierConfiguration(),
        door: DoorConfiguration,
        tls: NIOSSLContext,
        group: any EventLoopGroup,
        office: any DeviceOffice,
        trust: any DeviceTrust,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.trust = trust
        self.clock = clock
        self.logger = logger
        self.group = group
        let clerk = SessionClerk(office: office, limits: SessionLimits(configuration), clock: clock, logger: logger)
        let loops = PerLoop(group) { CourierLoop($0) }
        self.clerk = clerk
        self.loops = loops
        firstTokenKey = office.tokenKey
        (renewals, renewal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        var door = door
        door.expectsIdleConnections = true
        // A dozen acknowledgements; what is longer comes in pieces.
        door.readBytes = min(door.readBytes, 512)
        let diagnosis: RefusalDesk.Diagnosis = { trust.fault(of: $0, now: clock.now()) }
        self.door = TLSDoor(
            configuration: door,
            context: tls,
            logger: logger,
            diagnosis: diagnosis
        ) { channel, peer in
            guard let loop = loops[channel.eventLoop] else { throw CourierRefusal(reason: "unknown event loop") }
            guard let certificate = peer.certificate else { throw CourierRefusal(reason: "no certificate") }
            let identity: DeviceIdentity
            do {
                identity = try trust.device(certificate: certificate, now: clock.now())
            } catch let fault as PeerRefusal {
                throw DoorRefusal(fault) { channel in
                    let handler = FarewellHandler(fault, configuration)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            let environment = peer.serverName.flatMap { PushEnvironment.named(by: $0) } ?? configuration.environment
            let handler = SessionHandler(identity: identity, environment: environment, clerk: clerk, loop: loop)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
    }

    /// Starts to listen.
    /// - Returns: The port.
    /// - Throws: ``HeraldDoor/DoorError`` if the address cannot be had.
    package func open() async throws -> Int {
        try await door.open(on: group)
    }

    /// Runs what connections leave to be done, until ``stop()`` has ended, or the task is cancelled.
    package func run() async {
        await withTaskGroup { group in
            group.addTask { await self.runSweeps() }
            group.addTask { await self.runRenewals() }
            await clerk.run()
            group.cancelAll()
        }
    }

    /// Takes no new connections, tells the devices that the service stops, and closes what is left after a while.
    package func stop() async {
        await door.stopListening()
        for link in clerk.table.links { link.dismiss(.shuttingDown) }
        await withTaskGroup { group in
            group.addTask { await self.clerk.table.untilEmpty() }
            group.addTask { [farewell = configuration.farewell] in try? await Task.sleep(for: farewell) }
            await group.next()
            group.cancelAll()
        }
        await door.closeConnections()
        clerk.finish()
    }

    /// How many connections there are, those in their handshake included.
    package var connectionCount: Int { door.connectionCount }

    /// The context for the handshakes from now on.
    package func replaceContext(_ context: NIOSSLContext) {
        door.replaceContext(context)
    }

    /// What devices that connect from now on are held to.
    package func replaceLimits(longestKeepAlive: Duration, longestSession: Duration) {
        clerk.limits.longestKeepAlive.store(longestKeepAlive.components.seconds, ordering: .relaxed)
        clerk.limits.longestSession.store(longestSession.components.seconds, ordering: .relaxed)
    }

    /// Ends the connections of devices that are not welcome any more: after every change of what is revoked.
    package func recheck() {
        let now = clock.now()
        for link in clerk.table.links where !trust.isWelcome(link.identity, now: now) {
            logger.notice(
                "device disconnected: its certificate is revoked or has expired",
                metadata: ["device": "\(link.identity.id)"]
            )
            link.dismiss(.revoked)
        }
    }

    /// Sends the devices that are connected their tokens under the newest key, after every change of the token keys.
    ///
    /// Returns at once; the devices get theirs one after the other.
    package func renewTokens() {
        renewal.yield()
    }

    private func runRenewals() async {
        var key = firstTokenKey
        for await _ in renewals {
            guard clerk.office.tokenKey != key else { continue }
            do {
                try await Task.sleep(for: configuration.tokenRenewalDelay)
                // Who connects from now on gets the newest in any case.
                key = clerk.office.tokenKey
                try await renewTokens(of: clerk.table.links)
            } catch { return }
        }
    }

    private func renewTokens(of links: [CourierLink]) async throws {
        let share = max(1, configuration.tokenRenewalsPerSecond / 10)
        for start in stride(from: 0, to: links.count, by: share) {
            if start > 0 { try await Task.sleep(for: .milliseconds(100)) }
            for link in links[start..<min(start + share, links.count)] { link.renewTokens() }
        }
        logger.info(
            "the devices that are connected were sent tokens under the newest token key",
            metadata: ["connections": "\(links.count)"]
        )
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
            recheck()
        }
    }
}

extension Courier: BroadcastOutlet {
    package func send(_ order: BroadcastOrder) {
        // Written once for all loops and connections; each loop gets one order.
        var properties = MQTTPropertyBlock()
        let packets = BroadcastPackets(order.broadcast, topic: order.feed.topic, now: clock.now(), &properties)
        order.expect(shares: loops.all.count)
        for loop in loops.all { loop.broadcasts.leave(LoopBroadcast(order: order, packets: packets)) }
    }
}

/// Why a connection is not taken after its handshake.
struct CourierRefusal: Error, CustomStringConvertible {
    let reason: String

    var description: String { reason }
}
