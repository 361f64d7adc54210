import HeraldModel
import HeraldWire

/// One MQTT 5 connection of a device, decided: connecting → subscribing → live.
///
/// Knows no clock and no socket. Packets go in, orders come out, to be carried out one after the other.
struct DeviceSession {
    /// What is to be done.
    enum Order: Hashable {
        case send(MQTTPacket)
        case report(DeviceEvent)
        /// The service let the device in, and wants a sign of life at least this often; zero for never.
        case live(keepAlive: Duration)
        /// The connection is over.
        case end(End)
    }

    /// How a connection ends.
    struct End: Error, Hashable {
        enum Advice: Hashable {
            /// Connect again.
            case retry
            /// Connect again, but not soon.
            case retryLater
            /// It would end in the same way.
            case giveUp
        }

        let advice: Advice
        let reason: String
    }

    private enum State {
        case connecting
        case live
        case ended
    }

    private let configuration: DeviceConfiguration
    private var state = State.connecting
    /// The apps whose SUBSCRIBE is not answered yet, by packet identifier.
    private var asked: [UInt16: Topic] = [:]
    /// The device tokens that the apps hold: presented on each connect, as APNs has devices do.
    private(set) var tokens: [Topic: DeviceToken]

    init(_ configuration: DeviceConfiguration, tokens: [Topic: DeviceToken] = [:]) {
        self.configuration = configuration
        self.tokens = tokens
    }

    /// The first packet.
    ///
    /// A clean start: registrations and what waits are the service's own and outlive sessions, and so no subscription of
    /// an app that is no longer asked for comes back.
    var connect: MQTTPacket {
        .connect(
            MQTTConnect(
                version: .v5,
                clientIdentifier: configuration.credential.id.name,
                isClean: true,
                keepAlive: UInt16(clamping: configuration.keepAlive.components.seconds),
                properties: [
                    .receiveMaximum(max(1, configuration.receiveMaximum)),
                    .maximumPacketSize(UInt32(clamping: max(1, configuration.maximumPacketBytes))),
                ]
            )
        )
    }

    mutating func received(_ packet: MQTTPacket) -> [Order] {
        switch (state, packet) {
        case (.ended, _): []
        case (.connecting, .connack(let connack)): received(connack)
        case (.live, .suback(let suback)): received(suback)
        case (.live, .publish(let publish)): received(publish)
        case (.live, .pingresp), (.live, .unsuback), (.live, .puback): []
        case (_, .disconnect(let disconnect)): end(DeviceSession.end(for: disconnect))
        default: end(violation("the service sent a packet out of its turn"), saying: .protocolError)
        }
    }

    /// The bytes are no MQTT.
    mutating func received(_ error: MQTTError) -> [Order] {
        end(violation(error.message), saying: error.code)
    }

    private mutating func received(_ connack: MQTTConnack) -> [Order] {
        guard !connack.reasonCode.isFailure else {
            return end(DeviceSession.end(for: connack.reasonCode, connack.properties.reasonString))
        }
        state = .live
        let keepAlive =
            connack.properties.serverKeepAlive.map { Duration.seconds(Int64($0)) } ?? configuration.keepAlive
        // A packet identifier is one of 65,535; nobody has as many apps.
        asked = Dictionary(uniqueKeysWithValues: zip(UInt16(1)..., configuration.apps.prefix(10_000)))
        let subscribes = asked.sorted { $0.key < $1.key }.map { Order.send(subscribe($0.value, identifier: $0.key)) }
        return [.live(keepAlive: keepAlive), .report(.connected)] + subscribes
    }

    private func subscribe(_ app: Topic, identifier: UInt16) -> MQTTPacket {
        let held = tokens[app].map { [MQTTProperty.userProperty(name: "token", value: $0.hex)] } ?? []
        return .subscribe(
            MQTTSubscribe(
                packetIdentifier: identifier,
                properties: MQTTProperties(held),
                subscriptions: [MQTTSubscription(filter: CourierFilter.everything(app).name)]
            )
        )
    }

    private mutating func received(_ suback: MQTTSuback) -> [Order] {
        guard let app = asked.removeValue(forKey: suback.packetIdentifier), let code = suback.reasonCodes.first else {
            return end(violation("the service acknowledged what was not asked"), saying: .protocolError)
        }
        guard code.isFailure else { return [] }
        return [.report(.appRefused(app, reason: DeviceSession.words(code, suback.properties.reasonString)))]
    }

    /// The acknowledgement comes after the report: a notification that nobody has seen is not delivered.
    private mutating func received(_ publish: MQTTPublish) -> [Order] {
        var orders: [Order] = []
        switch CourierTopic(publish.topic) {
        case .notifications(let topic):
            orders.append(.report(.notification(ReceivedNotification(publish, topic: topic))))
        case .token(let topic):
            guard let token = DeviceToken(hex: publish.payload) else {
                return end(violation("the service sent a device token that is none"), saying: .payloadFormatInvalid)
            }
            tokens[topic] = token
            orders.append(.report(.token(token, for: topic)))
        default:
            // Nothing else was subscribed to; a later service may know more.
            break
        }
        if let identifier = publish.packetIdentifier {
            guard publish.qualityOfService == .atLeastOnce else {
                return end(violation("the service sent at a QoS that was not asked"), saying: .qosNotSupported)
            }
            orders.append(.send(.puback(MQTTPublishAnswer(packetIdentifier: identifier))))
        }
        return orders
    }

    private mutating func end(_ end: End, saying code: MQTTReasonCode? = nil) -> [Order] {
        // A DISCONNECT before CONNACK would be out of turn for a client too.
        let canSay = state == .live
        state = .ended
        guard let code, canSay else { return [.end(end)] }
        return [.send(.disconnect(MQTTDisconnect(reasonCode: code))), .end(end)]
    }

    private func violation(_ reason: String) -> End {
        End(advice: .retryLater, reason: reason)
    }

    private static func end(for code: MQTTReasonCode, _ reason: String?) -> End {
        let advice: End.Advice =
            switch code {
            case .serverUnavailable, .unspecifiedError, .useAnotherServer, .serverMoved: .retry
            case .serverBusy, .quotaExceeded, .connectionRateExceeded: .retryLater
            default: .giveUp
            }
        return End(advice: advice, reason: "the service refused the connection: \(words(code, reason))")
    }

    private static func end(for disconnect: MQTTDisconnect) -> End {
        let words = words(disconnect.reasonCode, disconnect.properties.reasonString)
        let advice: End.Advice =
            switch disconnect.reasonCode {
            case .sessionTakenOver, .quotaExceeded, .messageRateTooHigh, .connectionRateExceeded, .serverBusy:
                .retryLater
            case .notAuthorized, .administrativeAction, .banned: .giveUp
            default: .retry
            }
        return End(advice: advice, reason: "the service ended the connection: \(words)")
    }

    /// The code's name with the service's own words.
    private static func words(_ code: MQTTReasonCode, _ reason: String?) -> String {
        reason.map { "\(code) (\($0))" } ?? "\(code)"
    }
}

extension ReceivedNotification {
    /// Reads what the device contract puts around a payload; what is missing or unknown is nil.
    init(_ publish: MQTTPublish, topic: Topic) {
        func property(_ name: String) -> String? { publish.properties.userProperties(named: name).first }
        self.topic = topic
        payload = publish.payload
        id = property("apns-id").flatMap { NotificationID($0) }
        pushType = property("apns-push-type").flatMap { PushType(rawValue: $0) }
        priority = property("apns-priority").flatMap { UInt8($0) }.flatMap { Priority(rawValue: $0) }
        collapseID = property("apns-collapse-id")
        expiresIn = publish.properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        isRepeated = publish.isDuplicate
    }
}
