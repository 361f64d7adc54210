extension MQTTReader {
    /// What CONNECT begins with.
    struct ProtocolLevel {
        let name: String
        let level: UInt8
    }

    mutating func protocolNameAndLevel() throws(MQTTError) -> ProtocolLevel {
        ProtocolLevel(name: try string(), level: try byte())
    }

    /// CONNECT after its protocol name and level (MQTT 5 §3.1.2.3 ff., MQTT 3.1.1 §3.1.2.3 ff.).
    mutating func connect(_ version: MQTTVersion) throws(MQTTError) -> MQTTConnect {
        let flags = ConnectFlags(bits: try byte())
        try flags.check(version)
        let keepAlive = try twoBytes()
        let properties = version == .v5 ? try properties(in: .connect) : []
        guard properties.authenticationMethod != nil || !properties.hasAuthenticationData else {
            throw .protocolError("authentication data without an authentication method")
        }
        let connect = MQTTConnect(
            version: version,
            clientIdentifier: try string(),
            isClean: flags.isClean,
            keepAlive: keepAlive,
            will: flags.hasWill ? try will(flags, version) : nil,
            userName: flags.hasUserName ? try string() : nil,
            password: flags.hasPassword ? try binary() : nil,
            properties: properties
        )
        try expectEnd()
        return connect
    }

    private mutating func will(_ flags: ConnectFlags, _ version: MQTTVersion) throws(MQTTError) -> MQTTWill {
        let properties = version == .v5 ? try properties(in: .will) : []
        let topic = try topicName()
        guard let qualityOfService = MQTTQualityOfService(rawValue: flags.willQoS) else { throw ConnectFlags.wrong }
        return MQTTWill(
            topic: topic,
            payload: try binary(),
            qualityOfService: qualityOfService,
            isRetained: flags.isWillRetained,
            properties: properties
        )
    }

    /// CONNACK (MQTT 5 §3.2, MQTT 3.1.1 §3.2).
    mutating func connack(_ version: MQTTVersion) throws(MQTTError) -> MQTTConnack {
        let flags = try byte()
        guard flags & 0xFE == 0 else { throw .malformed("CONNACK has a reserved flag set") }
        let code = version == .v5 ? try reasonCode(for: .connack) : try connectReturnCode()
        let connack = MQTTConnack(
            isSessionPresent: flags == 1,
            reasonCode: code,
            properties: version == .v5 ? try properties(in: .connack) : []
        )
        try expectEnd()
        return connack
    }

    private mutating func connectReturnCode() throws(MQTTError) -> MQTTReasonCode {
        guard let code = MQTTReasonCode(connectReturnCode: try byte()) else {
            throw .malformed("CONNACK has a reserved return code")
        }
        return code
    }
}

/// The connect flags (MQTT 5 §3.1.2.3).
private struct ConnectFlags {
    let bits: UInt8

    var isClean: Bool { bits & 0x02 != 0 }
    var hasWill: Bool { bits & 0x04 != 0 }
    var willQoS: UInt8 { bits >> 3 & 0x03 }
    var isWillRetained: Bool { bits & 0x20 != 0 }
    var hasPassword: Bool { bits & 0x40 != 0 }
    var hasUserName: Bool { bits & 0x80 != 0 }

    static let wrong = MQTTError.malformed("CONNECT has flags that contradict each other, or a reserved one")

    /// Refuses the reserved flag ([MQTT-3.1.2-3]) and impossible wills ([MQTT-3.1.2-11], [MQTT-3.1.2-12], [MQTT-3.1.2-13]).
    ///
    /// A password without a user name is new in MQTT 5; 3.1.1 forbids it (its [MQTT-3.1.2-22]).
    func check(_ version: MQTTVersion) throws(MQTTError) {
        let willIsRight = hasWill ? willQoS <= 2 : willQoS == 0 && !isWillRetained
        let passwordIsRight = version == .v5 || hasUserName || !hasPassword
        guard bits & 0x01 == 0, willIsRight, passwordIsRight else { throw ConnectFlags.wrong }
    }
}

extension MQTTProperties {
    fileprivate var hasAuthenticationData: Bool {
        entries.contains { if case .authenticationData = $0 { true } else { false } }
    }
}
