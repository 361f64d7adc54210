extension MQTTReader {
    /// Reads the body of a packet; `flags` is the lower half of its first byte, where only PUBLISH has a choice.
    mutating func packet(
        _ kind: MQTTPacketKind,
        flags: UInt8,
        version: MQTTVersion
    ) throws(MQTTError) -> MQTTPacket {
        switch kind {
        case .connect:
            let start = try protocolNameAndLevel()
            guard start.level == version.rawValue else { throw .protocolError("a second CONNECT") }
            return .connect(try connect(version))
        case .connack: return .connack(try connack(version))
        case .publish: return .publish(try publish(flags, version))
        case .puback: return .puback(try publishAnswer(kind, version))
        case .pubrec: return .pubrec(try publishAnswer(kind, version))
        case .pubrel: return .pubrel(try publishAnswer(kind, version))
        case .pubcomp: return .pubcomp(try publishAnswer(kind, version))
        case .subscribe: return .subscribe(try subscribe(version))
        case .suback: return .suback(try suback(version))
        case .unsubscribe: return .unsubscribe(try unsubscribe(version))
        case .unsuback: return .unsuback(try unsuback(version))
        case .pingreq, .pingresp:
            try expectEnd()
            return kind == .pingreq ? .pingreq : .pingresp
        case .disconnect: return .disconnect(try disconnect(version))
        case .auth: return .auth(try auth())
        }
    }

    mutating func reasonCode(for kind: MQTTPacketKind) throws(MQTTError) -> MQTTReasonCode {
        guard let code = MQTTReasonCode(rawValue: try byte()), code.isAllowed(in: kind) else {
            throw .protocolError("a reason code does not belong in its packet")
        }
        return code
    }

    private mutating func publish(_ flags: UInt8, _ version: MQTTVersion) throws(MQTTError) -> MQTTPublish {
        let isDuplicate = flags & 0x08 != 0
        // [MQTT-3.3.1-4]: both QoS bits set; [MQTT-3.3.1-2]: a duplicate at QoS 0.
        guard let qualityOfService = MQTTQualityOfService(rawValue: flags >> 1 & 0x03) else {
            throw .malformed("PUBLISH has QoS 3")
        }
        guard qualityOfService != .atMostOnce || !isDuplicate else {
            throw .malformed("PUBLISH is a duplicate at QoS 0")
        }
        let topic = try string()
        guard MQTTReader.hasNoWildcard(topic) else { throw MQTTReader.wildcardInName }
        let identifier = qualityOfService == .atMostOnce ? nil : try packetIdentifier()
        let properties = version == .v5 ? try properties(in: .publish) : []
        // Only a topic alias may replace the name (MQTT 5 §3.3.2.1).
        guard !topic.isEmpty || properties.topicAlias != nil else { throw .protocolError("a topic name is empty") }
        return MQTTPublish(
            topic: topic,
            packetIdentifier: identifier,
            qualityOfService: qualityOfService,
            isDuplicate: isDuplicate,
            isRetained: flags & 0x01 != 0,
            properties: properties,
            payload: rest()
        )
    }

    private mutating func publishAnswer(
        _ kind: MQTTPacketKind,
        _ version: MQTTVersion
    ) throws(MQTTError) -> MQTTPublishAnswer {
        let identifier = try packetIdentifier()
        let (code, properties) = try ending(of: kind, .publishAnswer, version)
        return MQTTPublishAnswer(packetIdentifier: identifier, reasonCode: code, properties: properties)
    }

    private mutating func subscribe(_ version: MQTTVersion) throws(MQTTError) -> MQTTSubscribe {
        let identifier = try packetIdentifier()
        let properties = version == .v5 ? try properties(in: .subscribe) : []
        var subscriptions: [MQTTSubscription] = []
        while !isAtEnd { subscriptions.append(try subscription(version)) }
        // [MQTT-3.8.3-2]
        guard !subscriptions.isEmpty else { throw .protocolError("SUBSCRIBE without a topic filter") }
        return MQTTSubscribe(packetIdentifier: identifier, properties: properties, subscriptions: subscriptions)
    }

    private mutating func subscription(_ version: MQTTVersion) throws(MQTTError) -> MQTTSubscription {
        let filter = try topicFilter()
        let options = try byte()
        // [MQTT-3.8.3-5]; in 3.1.1 all but the QoS are reserved (its [MQTT-3.8.3-4]).
        guard options & (version == .v5 ? 0xC0 : 0xFC) == 0 else { throw .malformed("a reserved option is set") }
        guard let maximumQoS = MQTTQualityOfService(rawValue: options & 0x03) else {
            throw version == .v5 ? .protocolError("SUBSCRIBE with QoS 3") : .malformed("SUBSCRIBE with QoS 3")
        }
        let subscription = MQTTSubscription(
            filter: filter,
            maximumQoS: maximumQoS,
            isNoLocal: options & 0x04 != 0,
            isRetainedAsPublished: options & 0x08 != 0,
            retainHandling: options >> 4 & 0x03
        )
        guard subscription.retainHandling != 3 else { throw .protocolError("SUBSCRIBE with retain handling 3") }
        // [MQTT-3.8.3-4]
        guard !subscription.isNoLocal || !filter.utf8.starts(with: "$share/".utf8) else {
            throw .protocolError("No Local on a shared subscription")
        }
        return subscription
    }

    private mutating func suback(_ version: MQTTVersion) throws(MQTTError) -> MQTTSubscriptionAnswer {
        let identifier = try packetIdentifier()
        let properties = version == .v5 ? try properties(in: .suback) : []
        var codes: [MQTTReasonCode] = []
        while !isAtEnd {
            let code = try reasonCode(for: .suback)
            // [MQTT-3.9.3-2] of 3.1.1: 0, 1, 2 and 0x80.
            guard version == .v5 || code.rawValue <= 0x80 else { throw .malformed("SUBACK has a reserved code") }
            codes.append(code)
        }
        guard !codes.isEmpty else { throw .malformed("SUBACK without a reason code") }
        return MQTTSubscriptionAnswer(packetIdentifier: identifier, properties: properties, reasonCodes: codes)
    }

    private mutating func unsubscribe(_ version: MQTTVersion) throws(MQTTError) -> MQTTUnsubscribe {
        let identifier = try packetIdentifier()
        let properties = version == .v5 ? try properties(in: .unsubscribe) : []
        var filters: [String] = []
        while !isAtEnd { filters.append(try topicFilter()) }
        // [MQTT-3.10.3-2]
        guard !filters.isEmpty else { throw .protocolError("UNSUBSCRIBE without a topic filter") }
        return MQTTUnsubscribe(packetIdentifier: identifier, properties: properties, filters: filters)
    }

    private mutating func unsuback(_ version: MQTTVersion) throws(MQTTError) -> MQTTSubscriptionAnswer {
        var unsuback = MQTTSubscriptionAnswer(packetIdentifier: try packetIdentifier(), reasonCodes: [])
        guard version == .v5 else {
            try expectEnd()
            return unsuback
        }
        unsuback.properties = try properties(in: .unsuback)
        while !isAtEnd { unsuback.reasonCodes.append(try reasonCode(for: .unsuback)) }
        guard !unsuback.reasonCodes.isEmpty else { throw .malformed("UNSUBACK without a reason code") }
        return unsuback
    }

    private mutating func disconnect(_ version: MQTTVersion) throws(MQTTError) -> MQTTDisconnect {
        let (code, properties) = try ending(of: .disconnect, .disconnect, version)
        return MQTTDisconnect(reasonCode: code, properties: properties)
    }

    private mutating func auth() throws(MQTTError) -> MQTTAuth {
        let (code, properties) = try ending(of: .auth, .auth, .v5)
        return MQTTAuth(reasonCode: code, properties: properties)
    }

    /// Reads the reason code and the properties at the end of a packet.
    ///
    /// MQTT 5 may leave out properties, and the code too if it is 0 (§3.4.2.1, §3.14.2.1); 3.1.1 has neither.
    private mutating func ending(
        of kind: MQTTPacketKind,
        _ place: MQTTPropertyPlace,
        _ version: MQTTVersion
    ) throws(MQTTError) -> (MQTTReasonCode, MQTTProperties) {
        let code = version == .v5 && !isAtEnd ? try reasonCode(for: kind) : .success
        let properties = version == .v5 && !isAtEnd ? try properties(in: place) : []
        try expectEnd()
        return (code, properties)
    }

    /// The protocol name and level at the start of CONNECT.
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
