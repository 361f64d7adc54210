/// The first packet of a client (MQTT 5 §3.1).
package struct MQTTConnect: Hashable, Sendable {
    package var version: MQTTVersion
    package var clientIdentifier: String
    /// Clean Start; in 3.1.1 Clean Session, which also ends the session with the connection.
    package var isClean: Bool
    /// Seconds; 0 for none.
    package var keepAlive: UInt16
    package var will: MQTTWill?
    package var userName: String?
    package var password: [UInt8]?
    package var properties: MQTTProperties

    package init(
        version: MQTTVersion,
        clientIdentifier: String,
        isClean: Bool,
        keepAlive: UInt16,
        will: MQTTWill? = nil,
        userName: String? = nil,
        password: [UInt8]? = nil,
        properties: MQTTProperties = []
    ) {
        self.version = version
        self.clientIdentifier = clientIdentifier
        self.isClean = isClean
        self.keepAlive = keepAlive
        self.will = will
        self.userName = userName
        self.password = password
        self.properties = properties
    }
}

/// The message that the client wants published when it is gone (MQTT 5 §3.1.2.5).
package struct MQTTWill: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qualityOfService: MQTTQualityOfService = .atMostOnce
    package var isRetained: Bool = false
    package var properties: MQTTProperties = []
}

/// The server's answer to CONNECT (MQTT 5 §3.2); a 3.1.1 return code is read into its reason code.
package struct MQTTConnack: Hashable, Sendable {
    package var isSessionPresent: Bool
    package var reasonCode: MQTTReasonCode
    package var properties: MQTTProperties

    package init(
        isSessionPresent: Bool = false,
        reasonCode: MQTTReasonCode = .success,
        properties: MQTTProperties = []
    ) {
        self.isSessionPresent = isSessionPresent
        self.reasonCode = reasonCode
        self.properties = properties
    }
}
