import HeraldWire
import NIOCore

/// Carries out what a ``DeviceSession`` decides, on one connection.
struct Conversation {
    private let client: DeviceClient
    private var session: DeviceSession
    private var decoder: MQTTPacketDecoder
    private var line: OpenLine?
    /// What was agreed when the service let the device in; nil before.
    private(set) var keepAlive: Duration?
    /// How the connection has ended; nil while it goes on.
    private(set) var end: DeviceSession.End?

    var watch: LineWatch? { line?.watch }

    init(_ client: DeviceClient) {
        self.client = client
        session = DeviceSession(client.configuration)
        decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: client.configuration.maximumPacketBytes)
    }

    mutating func begin(_ line: OpenLine) async {
        self.line = line
        await send(session.connect)
    }

    mutating func received(_ bytes: ByteBuffer, _ handle: (DeviceEvent) async throws -> Void) async throws {
        decoder.append(bytes)
        while end == nil, let orders = orders() { try await perform(orders, handle) }
    }

    /// Something is new while the connection is there.
    mutating func tell(_ news: LineNews, _ handle: (DeviceEvent) async throws -> Void) async throws {
        if news.hasNetworkChange { watch?.suspect() }
        let orders = client.withMemory { news.isTimeToRepeat ? session.tellAgain($0) : session.tell($0) }
        try await perform(orders, handle)
    }

    mutating func closed(_ reason: String) {
        end = end ?? DeviceSession.End(advice: .retry, reason: watch?.reason ?? reason)
    }

    /// Connecting took too long, unless it is done.
    mutating func isLate() {
        if keepAlive == nil { closed("the service did not answer in time") }
    }

    /// What the next packet asks for; nil if more bytes are needed.
    private mutating func orders() -> [DeviceSession.Order]? {
        do {
            guard let packet = try decoder.next() else { return nil }
            return client.withMemory { session.received(packet, &$0) }
        } catch {
            return session.received(error)
        }
    }

    private mutating func perform(
        _ orders: [DeviceSession.Order],
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws {
        for order in orders where end == nil {
            switch order {
            case .send(let packet):
                await send(packet)
            case .report(let event):
                watch?.setBusy(true)
                defer { watch?.setBusy(false) }
                try await handle(event)
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
        do {
            var bytes = ByteBuffer()
            try MQTTPacketEncoder.encode(packet, version: .v5, into: &bytes)
            try await line?.outbound.write(bytes)
        } catch {
            closed(client.words(for: error))
        }
    }
}
