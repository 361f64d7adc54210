package import NIOCore

/// Properties as bytes, without their length, for hot paths.
///
/// One block is cleared and filled again for each packet, without a value or a string in between. The caller makes sure that
/// each property is allowed in the packet, and not repeated.
package struct MQTTPropertyBlock: Sendable {
    package private(set) var bytes = ByteBuffer()

    package init() {}

    package mutating func clear() {
        bytes.clear()
    }

    /// Seconds.
    package mutating func appendMessageExpiryInterval(_ seconds: UInt32) {
        bytes.writeInteger(MQTTPropertyIdentifier.messageExpiryInterval.rawValue)
        bytes.writeInteger(seconds)
    }

    package mutating func appendContentType(_ type: StaticString) {
        bytes.writeInteger(MQTTPropertyIdentifier.contentType.rawValue)
        bytes.writeInteger(UInt16(truncatingIfNeeded: type.utf8CodeUnitCount))
        bytes.writeStaticString(type)
    }

    /// The value is UTF-8 of characters that MQTT allows (`Unicode.Scalar.isAllowedInMQTT`); false, with nothing appended, if
    /// it is longer than 65,535 bytes.
    @discardableResult
    package mutating func appendUserProperty(_ name: StaticString, _ value: [UInt8]) -> Bool {
        guard let length = UInt16(exactly: value.count) else { return false }
        appendUserPropertyName(name)
        bytes.writeInteger(length)
        bytes.writeBytes(value)
        return true
    }

    package mutating func appendUserProperty(_ name: StaticString, _ value: StaticString) {
        appendUserPropertyName(name)
        bytes.writeInteger(UInt16(truncatingIfNeeded: value.utf8CodeUnitCount))
        bytes.writeStaticString(value)
    }

    private mutating func appendUserPropertyName(_ name: StaticString) {
        bytes.writeInteger(MQTTPropertyIdentifier.userProperty.rawValue)
        bytes.writeInteger(UInt16(truncatingIfNeeded: name.utf8CodeUnitCount))
        bytes.writeStaticString(name)
    }

    /// Any property, for packets that are sent rarely.
    package mutating func append(_ property: MQTTProperty) throws(MQTTError) {
        var writer = MQTTWriter(bytes)
        bytes = ByteBuffer()
        try writer.property(property)
        bytes = writer.bytes
    }
}

extension MQTTWriter {
    mutating func property(_ property: MQTTProperty) throws(MQTTError) {
        switch property {
        case .payloadFormatIndicator(let value): write(.payloadFormatIndicator, value)
        case .messageExpiryInterval(let value): write(.messageExpiryInterval, value)
        case .contentType(let value): try write(.contentType, value)
        case .responseTopic(let value): try write(.responseTopic, value)
        case .correlationData(let value): try write(.correlationData, value)
        case .subscriptionIdentifier(let value): try writeVariable(.subscriptionIdentifier, value)
        case .sessionExpiryInterval(let value): write(.sessionExpiryInterval, value)
        case .assignedClientIdentifier(let value): try write(.assignedClientIdentifier, value)
        case .serverKeepAlive(let value): write(.serverKeepAlive, value)
        case .authenticationMethod(let value): try write(.authenticationMethod, value)
        case .authenticationData(let value): try write(.authenticationData, value)
        case .requestProblemInformation(let value): write(.requestProblemInformation, value)
        case .willDelayInterval(let value): write(.willDelayInterval, value)
        case .requestResponseInformation(let value): write(.requestResponseInformation, value)
        case .responseInformation(let value): try write(.responseInformation, value)
        case .serverReference(let value): try write(.serverReference, value)
        case .reasonString(let value): try write(.reasonString, value)
        case .receiveMaximum(let value): write(.receiveMaximum, value)
        case .topicAliasMaximum(let value): write(.topicAliasMaximum, value)
        case .topicAlias(let value): write(.topicAlias, value)
        case .maximumQoS(let value): write(.maximumQoS, value)
        case .retainAvailable(let value): write(.retainAvailable, value)
        case .userProperty(let name, let value):
            try write(.userProperty, name)
            try string(value)
        case .maximumPacketSize(let value): write(.maximumPacketSize, value)
        case .wildcardSubscriptionAvailable(let value): write(.wildcardSubscriptionAvailable, value)
        case .subscriptionIdentifierAvailable(let value): write(.subscriptionIdentifierAvailable, value)
        case .sharedSubscriptionAvailable(let value): write(.sharedSubscriptionAvailable, value)
        }
    }

    private mutating func write(_ identifier: MQTTPropertyIdentifier, _ value: UInt8) {
        byte(identifier.rawValue)
        byte(value)
    }

    private mutating func write(_ identifier: MQTTPropertyIdentifier, _ value: UInt16) {
        byte(identifier.rawValue)
        twoBytes(value)
    }

    private mutating func write(_ identifier: MQTTPropertyIdentifier, _ value: UInt32) {
        byte(identifier.rawValue)
        fourBytes(value)
    }

    private mutating func write(_ identifier: MQTTPropertyIdentifier, _ value: String) throws(MQTTError) {
        byte(identifier.rawValue)
        try string(value)
    }

    private mutating func write(_ identifier: MQTTPropertyIdentifier, _ value: [UInt8]) throws(MQTTError) {
        byte(identifier.rawValue)
        try binary(value)
    }

    private mutating func writeVariable(_ identifier: MQTTPropertyIdentifier, _ value: UInt32) throws(MQTTError) {
        byte(identifier.rawValue)
        try variableByteInteger(Int(value))
    }
}
