import HeraldWire
import LoadKit
import NIOCore

/// One connection of the load: a device that acknowledges what it receives, or a publisher that keeps its window full.
final class LoadClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Role: Sendable {
        case device
        case publisher(start: MonotonicTime)
    }

    struct Settings: Sendable {
        let number: Int
        let role: Role
        let subscribe: String
        let publish: String
        let devices: Int
        let window: Int
        let rate: Double
        let payload: Int
        /// Ready once a device token came, not with the acknowledged subscription.
        let awaitsToken: Bool
    }

    private let settings: Settings
    private let statistics: Statistics
    private var ready: EventLoopPromise<Void>?
    private var decoder = MQTTPacketDecoder(version: .v311, maximumPacketSize: 1 << 20)
    private var out = ByteBuffer()
    private var inFlight = 0
    private var sent = 0
    private var packet: UInt16 = 0
    private var topics: [[UInt8]] = []

    init(_ settings: Settings, statistics: Statistics, ready: EventLoopPromise<Void>) {
        self.settings = settings
        self.statistics = statistics
        self.ready = ready
    }

    private var isPublisher: Bool {
        if case .publisher = settings.role { true } else { false }
    }

    func channelActive(context: ChannelHandlerContext) {
        let suffix = isPublisher ? "-publisher" : ""
        let connect = MQTTConnect(
            version: .v311,
            clientIdentifier: "bench-\(settings.number)\(suffix)",
            isClean: true,
            keepAlive: 600
        )
        send(.connect(connect), context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        decoder.append(unwrapInboundIn(data))
        do {
            while let packet = try decoder.next() { received(packet, context) }
        } catch {
            fail(error, context)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(ChannelError.eof, context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error, context)
    }

    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        ready?.fail(error)
        ready = nil
        context.close(promise: nil)
    }

    private func received(_ packet: MQTTPacket, _ context: ChannelHandlerContext) {
        switch packet {
        case .connack(let connack):
            guard connack.reasonCode == .success else { return fail(ChannelError.eof, context) }
            if isPublisher {
                beginPublishing(context)
            } else if settings.subscribe.isEmpty {
                isReady()
            } else {
                let filter = settings.subscribe.replacing("{n}", with: "\(settings.number)")
                let subscription = MQTTSubscription(filter: filter, maximumQoS: .atLeastOnce)
                send(.subscribe(MQTTSubscribe(packetIdentifier: 1, subscriptions: [subscription])), context)
            }
        case .suback:
            if !settings.awaitsToken { isReady() }
        case .publish(let publish):
            if settings.awaitsToken, publish.topic.hasSuffix("/token") {
                statistics.received(token: String(decoding: publish.payload, as: UTF8.self))
                isReady()
            } else {
                statistics.received(publish.payload)
            }
            if let identifier = publish.packetIdentifier {
                out.writeInteger(0x4002 as UInt16)
                out.writeInteger(identifier)
            }
        case .puback:
            inFlight -= 1
            if settings.rate == 0 { fill() }
        default:
            break
        }
    }

    private func isReady() {
        ready?.succeed()
        ready = nil
    }

    private func beginPublishing(_ context: ChannelHandlerContext) {
        isReady()
        topics = (0..<settings.devices).map { Array(settings.publish.replacing("{n}", with: "\($0)").utf8) }
        // Publishers begin at different devices.
        sent = settings.number * 7919
        if settings.rate == 0 {
            fill()
        } else {
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let began = MonotonicTime.now
            let first = sent
            context.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { _ in
                let (client, context) = bound.value
                let due = first + Int(MonotonicTime.now.seconds(since: began) * client.settings.rate)
                while client.sent < due { client.publishOne() }
                client.flush(context)
            }
        }
    }

    private func fill() {
        while inFlight < settings.window { publishOne() }
    }

    private func publishOne() {
        packet = packet == .max ? 1 : packet + 1
        let topic = topics[sent % topics.count]
        let payload = LoadPayload.make(bytes: settings.payload)
        _ = MQTTOutgoingPublish(topic: topic, packetIdentifier: packet).write(nil, payload: payload, into: &out)
        sent += 1
        inFlight += 1
    }

    private func send(_ packet: MQTTPacket, _ context: ChannelHandlerContext) {
        do {
            try MQTTPacketEncoder.encode(packet, version: .v311, into: &out)
        } catch {
            fail(error, context)
        }
        flush(context)
    }

    private func flush(_ context: ChannelHandlerContext) {
        guard out.readableBytes > 0 else { return }
        context.writeAndFlush(wrapOutboundOut(out), promise: nil)
        out = context.channel.allocator.buffer(capacity: 0)
    }
}
