import HeraldWire
import NIOCore

/// Carries out what a ``DeviceSession`` decides, on one connection.
struct Conversation {
    private let client: DeviceClient
    private var session: DeviceSession
    private var decoder: MQTTPacketDecoder
    private var line: OpenLine?
    /// Whether nothing can be written any more.
    private var isMute = false
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
        closed(DeviceSession.End(advice: .retry, reason: reason))
    }

    /// The connection is gone; what this side ended itself it knows the reason for.
    mutating func closed(_ cause: DeviceSession.End) {
        end = end ?? watch?.reason.map { DeviceSession.End(advice: .retry, reason: $0) } ?? cause
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
        guard !isMute else { return }
        var bytes = ByteBuffer()
        do {
            try MQTTPacketEncoder.encode(packet, version: .v5, into: &bytes)
        } catch {
            return closed("a packet could not be written: \(error)")
        }
        do {
            try await line?.outbound.write(bytes)
        } catch {
            // The reader hears of the end too, after the service's last word: an alert, say, that came before this
            // could go.
            isMute = true
        }
    }
}
