extension MQTTReader {
    /// Reads the properties of a packet or a will, and checks their places, types and repetitions (MQTT 5 §2.2.2).
    mutating func properties(in place: MQTTPropertyPlace) throws(MQTTError) -> MQTTProperties {
        let length = try variableByteInteger()
        guard length > 0 else { return [] }
        var part = try part(length: length)
        var properties = MQTTProperties()
        // One bit for each identifier; the largest is 0x2A.
        var seen: UInt64 = 0
        while !part.isAtEnd {
            let identifier = try part.propertyIdentifier()
            guard identifier.isAllowed(in: place) else { throw .malformed("a property does not belong in its packet") }
            let bit = UInt64(1) << UInt64(identifier.rawValue)
            guard seen & bit == 0 || identifier.isRepeatable(in: place) else {
                throw .protocolError("a property appears more than once in a packet")
            }
            seen |= bit
            properties.append(try part.property(identifier))
        }
        return properties
    }

    /// Identifiers are variable byte integers; all that are defined fit into one byte.
    private mutating func propertyIdentifier() throws(MQTTError) -> MQTTPropertyIdentifier {
        let number = try variableByteInteger()
        guard let byte = UInt8(exactly: number), let identifier = MQTTPropertyIdentifier(rawValue: byte) else {
            throw .malformed("a property is unknown")
        }
        return identifier
    }

    private mutating func property(_ identifier: MQTTPropertyIdentifier) throws(MQTTError) -> MQTTProperty {
        switch identifier {
        case .payloadFormatIndicator: .payloadFormatIndicator(try flag())
        case .messageExpiryInterval: .messageExpiryInterval(try fourBytes())
        case .contentType: .contentType(try string())
        case .responseTopic: .responseTopic(try responseTopic())
        case .correlationData: .correlationData(try binary())
        case .subscriptionIdentifier:
            .subscriptionIdentifier(try notZero(UInt32(truncatingIfNeeded: variableByteInteger())))
        case .sessionExpiryInterval: .sessionExpiryInterval(try fourBytes())
        case .assignedClientIdentifier: .assignedClientIdentifier(try string())
        case .serverKeepAlive: .serverKeepAlive(try twoBytes())
        case .authenticationMethod: .authenticationMethod(try string())
        case .authenticationData: .authenticationData(try binary())
        case .requestProblemInformation: .requestProblemInformation(try flag())
        case .willDelayInterval: .willDelayInterval(try fourBytes())
        case .requestResponseInformation: .requestResponseInformation(try flag())
        case .responseInformation: .responseInformation(try string())
        case .serverReference: .serverReference(try string())
        case .reasonString: .reasonString(try string())
        case .receiveMaximum: .receiveMaximum(try notZero(twoBytes()))
        case .topicAliasMaximum: .topicAliasMaximum(try twoBytes())
        case .topicAlias: .topicAlias(try topicAlias())
        case .maximumQoS: .maximumQoS(try flag())
        case .retainAvailable: .retainAvailable(try flag())
        case .userProperty: .userProperty(name: try string(), value: try string())
        case .maximumPacketSize: .maximumPacketSize(try notZero(fourBytes()))
        case .wildcardSubscriptionAvailable: .wildcardSubscriptionAvailable(try flag())
        case .subscriptionIdentifierAvailable: .subscriptionIdentifierAvailable(try flag())
        case .sharedSubscriptionAvailable: .sharedSubscriptionAvailable(try flag())
        }
    }

    /// A byte that the standard allows to be 0 or 1 only.
    private mutating func flag() throws(MQTTError) -> UInt8 {
        let value = try byte()
        guard value <= 1 else { throw .protocolError("a property is neither 0 nor 1") }
        return value
    }

    private func notZero<Number: FixedWidthInteger>(_ value: Number) throws(MQTTError) -> Number {
        guard value != 0 else { throw .protocolError("a property is 0") }
        return value
    }

    /// [MQTT-3.3.2-8]; MQTT 5 §3.3.2.3.4 has a reason code of its own for it.
    private mutating func topicAlias() throws(MQTTError) -> UInt16 {
        let alias = try twoBytes()
        guard alias != 0 else { throw MQTTError(.topicAliasInvalid, "a topic alias is 0") }
        return alias
    }

    /// [MQTT-3.3.2-14].
    private mutating func responseTopic() throws(MQTTError) -> String {
        let topic = try string()
        guard MQTTReader.hasNoWildcard(topic) else { throw MQTTReader.wildcardInName }
        return topic
    }
}
