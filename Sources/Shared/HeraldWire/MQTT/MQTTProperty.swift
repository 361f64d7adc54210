/// One property of a packet (MQTT 5 §2.2.2.2), with a value of the type that the standard gives it.
package enum MQTTProperty: Hashable, Sendable {
    case payloadFormatIndicator(UInt8)
    /// Seconds.
    case messageExpiryInterval(UInt32)
    case contentType(String)
    case responseTopic(String)
    case correlationData([UInt8])
    /// 1 to 268,435,455.
    case subscriptionIdentifier(UInt32)
    /// Seconds; `UInt32.max` for ever.
    case sessionExpiryInterval(UInt32)
    case assignedClientIdentifier(String)
    /// Seconds.
    case serverKeepAlive(UInt16)
    case authenticationMethod(String)
    case authenticationData([UInt8])
    case requestProblemInformation(UInt8)
    /// Seconds.
    case willDelayInterval(UInt32)
    case requestResponseInformation(UInt8)
    case responseInformation(String)
    case serverReference(String)
    case reasonString(String)
    case receiveMaximum(UInt16)
    case topicAliasMaximum(UInt16)
    case topicAlias(UInt16)
    case maximumQoS(UInt8)
    case retainAvailable(UInt8)
    case userProperty(name: String, value: String)
    /// Bytes of a whole packet, fixed header included.
    case maximumPacketSize(UInt32)
    case wildcardSubscriptionAvailable(UInt8)
    case subscriptionIdentifierAvailable(UInt8)
    case sharedSubscriptionAvailable(UInt8)
}

/// The identifier of a property.
package enum MQTTPropertyIdentifier: UInt8, Hashable, Sendable, CaseIterable {
    case payloadFormatIndicator = 0x01
    case messageExpiryInterval = 0x02
    case contentType = 0x03
    case responseTopic = 0x08
    case correlationData = 0x09
    case subscriptionIdentifier = 0x0B
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case requestProblemInformation = 0x17
    case willDelayInterval = 0x18
    case requestResponseInformation = 0x19
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case topicAlias = 0x23
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifierAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A

    /// Whether the standard allows the property in this place (MQTT 5, table 2-4).
    package func isAllowed(in place: MQTTPropertyPlace) -> Bool {
        switch self {
        case .userProperty:
            true
        case .payloadFormatIndicator, .messageExpiryInterval, .contentType, .responseTopic, .correlationData:
            place == .publish || place == .will
        case .subscriptionIdentifier:
            place == .publish || place == .subscribe
        case .sessionExpiryInterval:
            place == .connect || place == .connack || place == .disconnect
        case .authenticationMethod, .authenticationData:
            place == .connect || place == .connack || place == .auth
        case .receiveMaximum, .topicAliasMaximum, .maximumPacketSize:
            place == .connect || place == .connack
        case .requestProblemInformation, .requestResponseInformation:
            place == .connect
        case .willDelayInterval:
            place == .will
        case .topicAlias:
            place == .publish
        case .serverReference:
            place == .connack || place == .disconnect
        case .reasonString:
            switch place {
            case .connack, .publishAnswer, .suback, .unsuback, .disconnect, .auth: true
            default: false
            }
        case .assignedClientIdentifier, .serverKeepAlive, .responseInformation, .maximumQoS, .retainAvailable,
            .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable, .sharedSubscriptionAvailable:
            place == .connack
        }
    }

    /// Whether the property may appear more than once in one place: the user property always, the subscription
    /// identifier in a PUBLISH that matched several subscriptions (MQTT 5 §3.3.2.3.8).
    package func isRepeatable(in place: MQTTPropertyPlace) -> Bool {
        switch self {
        case .userProperty: true
        case .subscriptionIdentifier: place == .publish
        default: false
        }
    }
}

/// The place of properties: a packet, or the will inside a CONNECT.
package enum MQTTPropertyPlace: Hashable, Sendable, CaseIterable {
    case connect
    case will
    case connack
    case publish
    /// PUBACK, PUBREC, PUBREL and PUBCOMP.
    case publishAnswer
    case subscribe
    case suback
    case unsubscribe
    case unsuback
    case disconnect
    case auth
}
