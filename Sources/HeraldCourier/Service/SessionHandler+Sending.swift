import HeraldMailbox
import HeraldModel
import HeraldWire
import Logging
import NIOCore

extension SessionHandler {
    /// Writes a packet of the session; flushed at the end of the turn.
    func send(_ packet: MQTTPacket) {
        guard context != nil else { return }
        var bytes = ByteBuffer()
        do {
            try MQTTPacketEncoder.encode(packet, version: version, into: &bytes)
            if bytes.readableBytes > maximumPacketSize {
                // What is only said for people gives way to the limit ([MQTT-3.1.2-24], [MQTT-3.2.2-19]).
                bytes.clear()
                try MQTTPacketEncoder.encode(packet.withoutWords, version: version, into: &bytes)
            }
        } catch {
            return clerk.logger.error("a packet could not be written", metadata: ["error": "\(error)"])
        }
        guard bytes.readableBytes <= maximumPacketSize else {
            // A device that cannot take the answer to its own packet cannot be served.
            context?.close(promise: nil)
            return
        }
        write { $0.writeBuffer(&bytes) }
    }

    /// Sends what waits, as far as the window and the socket allow.
    func sendWaiting() {
        guard let context else { return }
        let limit = clerk.limits.configuration.outboundBytes
        while context.channel.isWritable, let message = window.next {
            switch message {
            case .delivery(let delivery): send(delivery)
            case .token(let app, let token, _): send(token, for: app)
            case .broadcast(let subscription): send(subscription)
            }
            if (output?.readableBytes ?? 0) >= limit { flush() }
        }
    }

    private func send(_ delivery: Delivery) {
        let notification = delivery.letter.notification
        let now = clerk.clock.now()
        guard !notification.isExpired(at: now), let topic = loop.topic(delivery.app, clerk.office) else {
            window.dropNext()
            return report(delivery, .expired)
        }
        let isV5 = version == .v5
        if isV5 { loop.properties.describe(notification, now: now) }
        let properties = isV5 ? loop.properties : nil
        guard isSmallEnough(topic, delivery.qualityOfService, properties, notification.payload.count) else {
            window.dropNext()
            return report(delivery, .tooLarge)
        }
        guard let departure = window.takeNext() else { return }
        let publish = MQTTOutgoingPublish(
            topic: topic,
            packetIdentifier: departure.packetIdentifier,
            isDuplicate: departure.isDuplicate
        )
        write { _ = publish.write(properties, payload: notification.payload, into: &$0) }
        if departure.packetIdentifier == nil { unconfirmed.append(delivery) }
    }

    private func isSmallEnough(
        _ topic: [UInt8],
        _ qualityOfService: UInt8,
        _ properties: MQTTPropertyBlock?,
        _ payloadBytes: Int
    ) -> Bool {
        guard maximumPacketSize != .max else { return true }
        let publish = MQTTOutgoingPublish(topic: topic, packetIdentifier: qualityOfService > 0 ? 1 : nil)
        return publish.size(properties, payloadBytes: payloadBytes) <= maximumPacketSize
    }

    private func send(_ token: DeviceToken, for app: AppNumber) {
        guard let departure = window.takeNext(), let topic = clerk.office.app(app)?.topic else { return }
        let publish = MQTTOutgoingPublish(
            topic: Array(CourierTopic.token(topic).name.utf8),
            packetIdentifier: departure.packetIdentifier
        )
        let payload = Array(token.hex.utf8)
        let properties = version == .v5 ? MQTTPropertyBlock() : nil
        guard publish.size(properties, payloadBytes: payload.count) <= maximumPacketSize else {
            if let identifier = departure.packetIdentifier { _ = window.acknowledge(identifier) }
            return
        }
        write { _ = publish.write(properties, payload: payload, into: &$0) }
    }

    func write(_ body: (inout ByteBuffer) -> Void) {
        guard let context else { return }
        // Taken out while it is written to, so that it is not copied.
        var buffer = output.take() ?? context.channel.allocator.buffer(capacity: 512)
        body(&buffer)
        output = buffer
    }

    /// Hands what was written to TLS and the socket.
    func flush() {
        guard let context, let buffer = output.take() else { return }
        if unconfirmed.isEmpty {
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        } else {
            // Nothing acknowledges QoS 0: what the socket has taken is delivered.
            let written = unconfirmed
            unconfirmed = []
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenSuccess { [self] in
                for delivery in written { report(delivery, .written) }
            }
            context.writeAndFlush(wrapOutboundOut(buffer), promise: promise)
        }
        if !context.channel.isWritable { noteStall(context) }
    }
}

extension MQTTPropertyBlock {
    /// [MQTT-3.3.2-6]: what is left; at least a second, since 0 would mean that it is over.
    mutating func appendRemainingTime(until storedUntil: WallTime, now: WallTime) {
        let left = ((storedUntil - now).wholeMilliseconds + 999) / 1000
        appendMessageExpiryInterval(UInt32(clamping: max(1, left)))
    }

    /// What MQTT 5 says of a notification beside its payload.
    fileprivate mutating func describe(_ notification: Notification, now: WallTime) {
        clear()
        if let storedUntil = notification.storedUntil {
            appendRemainingTime(until: storedUntil, now: now)
        }
        appendContentType("application/json")
        appendUserProperty("apns-id", notification.id.canonicalBytes)
        appendUserProperty("apns-push-type", notification.pushType.text)
        appendUserProperty("apns-priority", notification.priority.text)
        if let collapseID = notification.collapseID { appendUserProperty("apns-collapse-id", Array(collapseID.utf8)) }
    }
}

// The raw values as bytes that need no conversion: these are written with every notification.

extension PushType {
    var text: StaticString {
        switch self {
        case .alert: "alert"
        case .background: "background"
        case .complication: "complication"
        case .controls: "controls"
        case .fileprovider: "fileprovider"
        case .liveactivity: "liveactivity"
        case .location: "location"
        case .mdm: "mdm"
        case .pushtotalk: "pushtotalk"
        case .voip: "voip"
        case .widgets: "widgets"
        }
    }
}

extension Priority {
    var text: StaticString {
        switch self {
        case .immediate: "10"
        case .conserving: "5"
        case .low: "1"
        }
    }
}

extension MQTTPacket {
    /// The packet without reason string and user properties.
    fileprivate var withoutWords: MQTTPacket {
        switch self {
        case .connack(var connack):
            connack.properties = connack.properties.withoutWords
            return .connack(connack)
        case .puback(var puback):
            puback.properties = puback.properties.withoutWords
            return .puback(puback)
        case .suback(var suback):
            suback.properties = suback.properties.withoutWords
            return .suback(suback)
        case .unsuback(var unsuback):
            unsuback.properties = unsuback.properties.withoutWords
            return .unsuback(unsuback)
        case .disconnect(var disconnect):
            disconnect.properties = disconnect.properties.withoutWords
            return .disconnect(disconnect)
        default: return self
        }
    }
}

extension MQTTProperties {
    fileprivate var withoutWords: MQTTProperties {
        MQTTProperties(
            entries.filter { property in
                switch property {
                case .reasonString, .userProperty: false
                default: true
                }
            }
        )
    }
}
