import HeraldWire
import LoadKit
import NIOCore

/// One connection of the load: a device that acknowledges what it receives, or a publisher.
final class LoadClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The state in which a device is ready.
    enum Goal: Hashable, Sendable {
        /// Its subscriptions.
        case subscribed
        /// A number of device tokens.
        case tokens(Int)
        /// A number of messages.
        case messages(Int)
    }

    struct Settings: Sendable {
        let clientIdentifier: String
        let filters: [String]
        var goal: Goal
        /// Whether the session outlives the connection; one that is there is not subscribed again.
        let keepsSession: Bool
        /// Seconds between two pings; 0 for none.
        let ping: Int
    }

    private let settings: Settings
    private let statistics: Statistics
    private var publishing: Publishing?
    private var ready: EventLoopPromise<Void>?
    private var published: EventLoopPromise<Void>?
    private var decoder = MQTTPacketDecoder(version: .v311, maximumPacketSize: 1 << 20)
    private var out = ByteBuffer()
    private var packet: UInt16 = 0
    private var received = 0
    private var isEnding = false
    private var context: ChannelHandlerContext?
    private var ticks: RepeatedTask?

    init(
        _ settings: Settings,
        publishing: Publishing? = nil,
        statistics: Statistics,
        ready: EventLoopPromise<Void>
    ) {
        self.settings = settings
        self.publishing = publishing
        self.statistics = statistics
        self.ready = ready
    }

    // What the load wants; on the event loop.

    /// Publishes at a pace from now on; `done` succeeds once everything was sent, if the pace has an end.
    func publish(_ pace: Publishing.Pace, done: EventLoopPromise<Void>?) {
        publishing?.set(pace)
        published = done
        ticks?.cancel()
        ticks = nil
        guard let context else {
            done?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        if publishing?.isPaced == true {
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            ticks = context.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { _ in
                bound.value.publishDue()
            }
        } else {
            publishDue()
        }
    }

    /// Says goodbye.
    func end() {
        isEnding = true
        ticks?.cancel()
        context?.close(promise: nil)
    }

    // What the connection does.

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let connect = MQTTConnect(
            version: .v311,
            clientIdentifier: settings.clientIdentifier,
            isClean: !settings.keepsSession,
            keepAlive: settings.ping > 0 ? UInt16(clamping: settings.ping) : 600
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
        if !isEnding, ready == nil { statistics.lost() }
        fail(ChannelError.eof, context)
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error, context)
    }

    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        ready?.fail(error)
        ready = nil
        published?.fail(error)
        published = nil
        ticks?.cancel()
        context.close(promise: nil)
    }

    private func received(_ packet: MQTTPacket, _ context: ChannelHandlerContext) {
        switch packet {
        case .connack(let connack):
            guard connack.reasonCode == .success else { return fail(ChannelError.eof, context) }
            if settings.ping > 0 { ping(every: .seconds(Int64(settings.ping)), context) }
            if settings.filters.isEmpty || connack.isSessionPresent {
                if settings.goal == .subscribed { isReady() }
            } else {
                let subscriptions = settings.filters.map { MQTTSubscription(filter: $0, maximumQoS: .atLeastOnce) }
                send(.subscribe(MQTTSubscribe(packetIdentifier: 1, subscriptions: subscriptions)), context)
            }
        case .suback:
            if settings.goal == .subscribed { isReady() }
        case .publish(let publish):
            if let identifier = publish.packetIdentifier {
                out.writeInteger(0x4002 as UInt16)
                out.writeInteger(identifier)
            }
            take(publish)
        case .puback:
            publishing?.acknowledged()
            statistics.published()
            if publishing?.isPaced == false { publishDue() }
        default:
            break
        }
    }

    private func take(_ publish: MQTTPublish) {
        if publish.topic.hasSuffix("/token") {
            guard case .tokens(let wanted) = settings.goal else { return }
            statistics.received(token: "\(publish.topic) \(String(decoding: publish.payload, as: UTF8.self))")
            received += 1
            if received == wanted { isReady() }
        } else {
            statistics.received(publish.payload)
            guard case .messages(let wanted) = settings.goal else { return }
            received += 1
            if received == wanted { isReady() }
        }
    }

    /// The first one at any moment of the first interval, so that those of many devices are spread.
    private func ping(every interval: TimeAmount, _ context: ChannelHandlerContext) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let first = TimeAmount.nanoseconds(.random(in: 0...interval.nanoseconds))
        ticks = context.eventLoop.scheduleRepeatedTask(initialDelay: first, delay: interval) { _ in
            let (client, context) = bound.value
            client.send(.pingreq, context)
        }
    }

    private func isReady() {
        ready?.succeed()
        ready = nil
    }

    private func publishDue() {
        while let topic = publishing?.nextTopic(), let size = publishing?.payload {
            packet = packet == .max ? 1 : packet + 1
            let payload = LoadPayload.make(bytes: size)
            _ = MQTTOutgoingPublish(topic: topic, packetIdentifier: packet).write(nil, payload: payload, into: &out)
        }
        if let context { flush(context) }
        guard publishing?.isDone == true else { return }
        published?.succeed()
        published = nil
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
