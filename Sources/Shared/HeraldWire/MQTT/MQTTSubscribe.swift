/// A request for subscriptions (MQTT 5 §3.8).
package struct MQTTSubscribe: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var properties: MQTTProperties
    /// At least one.
    package var subscriptions: [MQTTSubscription]

    package init(packetIdentifier: UInt16, properties: MQTTProperties = [], subscriptions: [MQTTSubscription]) {
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.subscriptions = subscriptions
    }
}

/// One topic filter with its options (MQTT 5 §3.8.3.1); 3.1.1 has the QoS only.
package struct MQTTSubscription: Hashable, Sendable {
    package var filter: String
    package var maximumQoS: MQTTQualityOfService
    package var isNoLocal: Bool
    package var isRetainedAsPublished: Bool
    /// 0: retained messages are sent; 1: only if the subscription is new; 2: not.
    package var retainHandling: UInt8

    package init(
        filter: String,
        maximumQoS: MQTTQualityOfService = .atLeastOnce,
        isNoLocal: Bool = false,
        isRetainedAsPublished: Bool = false,
        retainHandling: UInt8 = 0
    ) {
        self.filter = filter
        self.maximumQoS = maximumQoS
        self.isNoLocal = isNoLocal
        self.isRetainedAsPublished = isRetainedAsPublished
        self.retainHandling = retainHandling
    }
}

/// The answer to SUBSCRIBE or UNSUBSCRIBE: one code for each filter, in their order (MQTT 5 §3.9, §3.11).
///
/// That to UNSUBSCRIBE has no codes in 3.1.1.
package struct MQTTSubscriptionAnswer: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var properties: MQTTProperties
    package var reasonCodes: [MQTTReasonCode]

    package init(packetIdentifier: UInt16, properties: MQTTProperties = [], reasonCodes: [MQTTReasonCode]) {
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.reasonCodes = reasonCodes
    }
}

/// A request to end subscriptions (MQTT 5 §3.10).
package struct MQTTUnsubscribe: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var properties: MQTTProperties
    /// At least one.
    package var filters: [String]

    package init(packetIdentifier: UInt16, properties: MQTTProperties = [], filters: [String]) {
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.filters = filters
    }
}
