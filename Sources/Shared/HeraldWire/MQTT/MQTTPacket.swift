/// A control packet of MQTT 5 or 3.1.1; in 3.1.1 without properties, and with success where it carries no code.
package enum MQTTPacket: Hashable, Sendable {
    // Out of line, because it is several times as large as every other packet and comes once in a connection.
    indirect case connect(MQTTConnect)
    case connack(MQTTConnack)
    case publish(MQTTPublish)
    case puback(MQTTPublishAnswer)
    case pubrec(MQTTPublishAnswer)
    case pubrel(MQTTPublishAnswer)
    case pubcomp(MQTTPublishAnswer)
    case subscribe(MQTTSubscribe)
    case suback(MQTTSubscriptionAnswer)
    case unsubscribe(MQTTUnsubscribe)
    case unsuback(MQTTSubscriptionAnswer)
    case pingreq
    case pingresp
    case disconnect(MQTTDisconnect)
    case auth(MQTTAuth)

    package var kind: MQTTPacketKind {
        switch self {
        case .connect: .connect
        case .connack: .connack
        case .publish: .publish
        case .puback: .puback
        case .pubrec: .pubrec
        case .pubrel: .pubrel
        case .pubcomp: .pubcomp
        case .subscribe: .subscribe
        case .suback: .suback
        case .unsubscribe: .unsubscribe
        case .unsuback: .unsuback
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        case .auth: .auth
        }
    }
}

/// The end of a connection (MQTT 5 §3.14); in 3.1.1 only clients send it, and it carries nothing.
package struct MQTTDisconnect: Hashable, Sendable {
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(reasonCode: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) {
        self.reasonCode = reasonCode
        self.properties = properties
    }
}

/// One step of an authentication beyond CONNECT (MQTT 5 §3.15).
package struct MQTTAuth: Hashable, Sendable {
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties = []
}
