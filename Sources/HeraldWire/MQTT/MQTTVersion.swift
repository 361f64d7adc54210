/// The versions of MQTT that are spoken, by the level that CONNECT carries.
package enum MQTTVersion: UInt8, Hashable, Sendable, CaseIterable {
    /// OASIS Standard, 29 October 2014.
    case v311 = 4
    /// OASIS Standard, 7 March 2019.
    case v5 = 5
}

/// What sender and receiver of a PUBLISH promise each other (MQTT 5 §4.3).
package enum MQTTQualityOfService: UInt8, Hashable, Sendable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2
}
