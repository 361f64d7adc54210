/// The supported versions of MQTT, by the protocol level in CONNECT.
package enum MQTTVersion: UInt8, Hashable, Sendable, CaseIterable {
    /// OASIS Standard, 29 October 2014.
    case v311 = 4
    /// OASIS Standard, 7 March 2019.
    case v5 = 5
}

/// The delivery guarantee of a PUBLISH (MQTT 5 §4.3).
package enum MQTTQualityOfService: UInt8, Hashable, Sendable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2
}
