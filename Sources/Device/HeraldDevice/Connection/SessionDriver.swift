import HeraldWire
import NIOCore

/// Performs the effects that a ``DeviceSession`` decides, on one connection.
struct SessionDriver {
    private let client: DeviceClient
    private var session: DeviceSession
    private var decoder: MQTTPacketDecoder
    private var connection: OpenConnection?
    /// Whether a write has failed: nothing more is written.
    private var hasFailedToWrite = false
    /// The keep-alive interval that the service accepted; nil before CONNACK.
    private(set) var keepAlive: Duration?
    /// The end of the connection; nil while it is open.
    private(set) var end: DeviceSession.End?

    var watchdog: ConnectionWatchdog? { connection?.watchdog }

    init(_ client: DeviceClient) {
        self.client = client
        session = DeviceSession(client.configuration)
        decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: client.configuration.maximumPacketBytes)
    }

    mutating func begin(_ connection: OpenConnection) async {
        self.connection = connection
        await send(session.connect)
    }

    mutating func received(_ bytes: ByteBuffer, _ handle: (DeviceEvent) async throws -> Void) async throws {
        decoder.append(bytes)
        while end == nil, let effects = nextEffects() { try await perform(effects, handle) }
    }

    /// Takes changes that were made while the connection is open.
    mutating func take(_ changes: PendingChanges, _ handle: (DeviceEvent) async throws -> Void) async throws {
        if changes.hasNetworkChange { watchdog?.suspect() }
        let effects = client.withMemory {
            changes.isRetryDue ? session.retryFailedRequests($0) : session.sendRequests($0)
        }
        try await perform(effects, handle)
    }

    mutating func closed(_ reason: String) {
        closed(DeviceSession.End(advice: .retry, reason: reason))
    }

    /// The connection is closed; if this side closed it, its own reason counts.
    mutating func closed(_ cause: DeviceSession.End) {
        end = end ?? watchdog?.reason.map { DeviceSession.End(advice: .retry, reason: $0) } ?? cause
    }

    mutating func connectTimeoutPassed() {
        guard keepAlive == nil else { return }
        closed("the service did not answer in time: check that it runs, and that device-port is its port for devices")
    }

    /// The effects of the next packet; nil if more bytes are needed.
    private mutating func nextEffects() -> [DeviceSession.Effect]? {
        do {
            guard let packet = try decoder.next() else { return nil }
            return client.withMemory { session.received(packet, &$0) }
        } catch {
            return session.received(error)
        }
    }

    private mutating func perform(
        _ effects: [DeviceSession.Effect],
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws {
        for effect in effects where end == nil {
            switch effect {
            case .send(let packet):
                await send(packet)
            case .report(let event):
                watchdog?.setBusy(true)
                defer { watchdog?.setBusy(false) }
                do {
                    try await handle(event)
                } catch {
                    // A connection that only ends at a message, each time it comes, would tell the service to withhold it.
                    let reason = "the device cannot keep what it receives"
                    let properties = MQTTProperties([.reasonString(reason)])
                    await send(.disconnect(MQTTDisconnect(reasonCode: .quotaExceeded, properties: properties)))
                    throw error
                }
            case .announcement(let text):
                if let event = client.take(text) { try await handle(event) }
                for effect in client.withMemory({ session.confirmAnnouncement($0) }) {
                    if case .send(let packet) = effect { await send(packet) }
                }
            case .remember(let key):
                client.withMemory { $0.seen.insert(key) }
            case .live(let keepAlive):
                self.keepAlive = keepAlive
            case .end(let end):
                self.end = end
            }
        }
    }

    private mutating func send(_ packet: MQTTPacket) async {
        guard !hasFailedToWrite else { return }
        var bytes = ByteBuffer()
        do {
            try MQTTPacketEncoder.encode(packet, version: .v5, into: &bytes)
        } catch {
            return closed("a packet could not be written: \(error)")
        }
        do {
            try await connection?.outbound.write(bytes)
        } catch {
            // The reader reports the end, after the service's last packet or alert, which may say why.
            hasFailedToWrite = true
        }
    }
}
