import HeraldModel
import HeraldWire

/// One connection of a device as it goes on: packets in, packets and events out.
///
/// Pure. MQTT 5 with a clean start: the registration is the service's and outlives the session, so the device only has to
/// say on each connect which apps it has, and which tokens it holds for them.
struct DeviceSession {
    /// What is to be done.
    enum Action: Hashable {
        case send(MQTTPacket)
        case connected(DeviceID, keepAlive: Duration)
        case token(DeviceToken, Topic)
        /// Show the notification, then send the answer.
        case notification(DeviceNotification, then: MQTTPacket?)
        case refused(Topic, reason: String)
    }

    private let topics: [Topic]
    private let keepAlive: Duration
    private var pending: [UInt16: Topic] = [:]
    private(set) var tokens: [Topic: DeviceToken]

    /// Begins; `tokens` is what earlier connections were given.
    init(topics: [Topic], keepAlive: Duration, tokens: [Topic: DeviceToken]) {
        self.topics = topics
        self.keepAlive = keepAlive
        self.tokens = tokens
    }

    /// The packet to begin with.
    ///
    /// The identifier is the service's to give: it knows it from the certificate.
    func connect() -> MQTTPacket {
        .connect(
            MQTTConnect(
                version: .v5,
                clientIdentifier: "",
                isClean: true,
                keepAlive: UInt16(clamping: keepAlive.components.seconds)
            )
        )
    }

    mutating func received(_ packet: MQTTPacket) throws(DeviceError) -> [Action] {
        switch packet {
        case .connack(let connack): return try connected(connack)
        case .suback(let suback): return subscribed(suback)
        case .publish(let publish): return published(publish)
        case .disconnect(let disconnect):
            throw DeviceError(.lost, DeviceSession.reason(disconnect.reasonCode, disconnect.properties))
        case .pingresp, .puback: return []
        default: throw DeviceError(.lost, "the service sent a packet that it should not")
        }
    }

    private mutating func connected(_ connack: MQTTConnack) throws(DeviceError) -> [Action] {
        guard connack.reasonCode == .success else {
            throw DeviceError(.refused, DeviceSession.reason(connack.reasonCode, connack.properties))
        }
        guard let id = connack.properties.assignedClientIdentifier.flatMap({ DeviceID($0) }) else {
            throw DeviceError(.refused, "the service did not say who the device is")
        }
        let asked = connack.properties.serverKeepAlive.map { Duration.seconds(Int64($0)) }
        var actions: [Action] = [.connected(id, keepAlive: asked ?? keepAlive)]
        for (index, topic) in topics.enumerated() {
            let identifier = UInt16(truncatingIfNeeded: index + 1)
            pending[identifier] = topic
            let held = tokens[topic].map { [MQTTProperty.userProperty(name: "token", value: $0.hex)] } ?? []
            let subscription = MQTTSubscription(
                filter: CourierFilter.everything(topic).name,
                maximumQoS: .atLeastOnce,
                retainHandling: 0
            )
            actions.append(
                .send(
                    .subscribe(
                        MQTTSubscribe(
                            packetIdentifier: identifier,
                            properties: MQTTProperties(held),
                            subscriptions: [subscription]
                        )
                    )
                )
            )
        }
        return actions
    }

    private mutating func subscribed(_ suback: MQTTSuback) -> [Action] {
        guard let topic = pending.removeValue(forKey: suback.packetIdentifier),
            let code = suback.reasonCodes.first(where: { $0.rawValue >= 0x80 })
        else { return [] }
        return [.refused(topic, reason: DeviceSession.reason(code, suback.properties))]
    }

    private mutating func published(_ publish: MQTTPublish) -> [Action] {
        let answer = publish.packetIdentifier.map { MQTTPacket.puback(MQTTPublishAnswer(packetIdentifier: $0)) }
        switch CourierTopic(publish.topic) {
        case .token(let topic)?:
            var actions: [Action] = []
            if let token = DeviceToken(String(decoding: publish.payload, as: UTF8.self)) {
                tokens[topic] = token
                actions.append(.token(token, topic))
            }
            if let answer { actions.append(.send(answer)) }
            return actions
        case .notifications(let topic)?:
            return [.notification(DeviceSession.notification(publish, topic), then: answer)]
        default:
            return answer.map { [.send($0)] } ?? []
        }
    }

    private static func notification(_ publish: MQTTPublish, _ topic: Topic) -> DeviceNotification {
        var values: [String: String] = [:]
        for case .userProperty(let name, let value) in publish.properties.entries { values[name] = value }
        return DeviceNotification(
            topic: topic,
            payload: publish.payload,
            id: values["apns-id"].flatMap { NotificationID($0) },
            pushType: values["apns-push-type"].flatMap { PushType(rawValue: $0) },
            priority: values["apns-priority"].flatMap { UInt8($0) }.flatMap { Priority(rawValue: $0) },
            collapseID: values["apns-collapse-id"],
            expiresIn: publish.properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        )
    }

    private static func reason(_ code: MQTTReasonCode, _ properties: MQTTProperties) -> String {
        let name = "0x" + Hex.text([code.rawValue])
        for case .reasonString(let text) in properties.entries { return "\(text) (\(name))" }
        return "the service's reason code is \(name)"
    }
}
