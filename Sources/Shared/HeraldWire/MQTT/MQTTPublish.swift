/// An application message (MQTT 5 §3.3).
package struct MQTTPublish: Hashable, Sendable {
    package var topic: String
    /// Not 0 at QoS 1 and 2; nil at QoS 0.
    package var packetIdentifier: UInt16?
    package var qualityOfService: MQTTQualityOfService
    package var isDuplicate: Bool
    package var isRetained: Bool
    package var properties: MQTTProperties
    package var payload: [UInt8]

    package init(
        topic: String,
        packetIdentifier: UInt16? = nil,
        qualityOfService: MQTTQualityOfService = .atMostOnce,
        isDuplicate: Bool = false,
        isRetained: Bool = false,
        properties: MQTTProperties = [],
        payload: [UInt8]
    ) {
        self.topic = topic
        self.packetIdentifier = packetIdentifier
        self.qualityOfService = qualityOfService
        self.isDuplicate = isDuplicate
        self.isRetained = isRetained
        self.properties = properties
        self.payload = payload
    }
}

/// The shape that PUBACK, PUBREC, PUBREL and PUBCOMP share (MQTT 5 §3.4 to §3.7).
package struct MQTTPublishAnswer: Hashable, Sendable {
    package var packetIdentifier: UInt16
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(packetIdentifier: UInt16, reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []) {
        self.packetIdentifier = packetIdentifier
        self.reasonCode = reasonCode
        self.properties = properties
    }
}
