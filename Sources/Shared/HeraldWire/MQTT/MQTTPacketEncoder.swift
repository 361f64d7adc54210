package import NIOCore

/// Writes packets.
///
/// The rules of a session are the session's part. In 3.1.1, properties and reason codes that the version does not know are
/// left out.
package enum MQTTPacketEncoder {
    /// Appends a packet to `buffer`; on request without reason string and user properties, which are text for people.
    /// - Returns: The bytes that it takes.
    /// - Throws: ``MQTTError`` if a field is longer than MQTT can carry, or the version has no such packet; `buffer` is
    ///   then as it was.
    @discardableResult
    package static func encode(
        _ packet: MQTTPacket,
        version: MQTTVersion,
        withoutText: Bool = false,
        into buffer: inout ByteBuffer
    ) throws(MQTTError) -> Int {
        var body = MQTTWriter()
        body.leavesOutText = withoutText
        var firstByte = packet.kind.firstByte
        switch packet {
        case .connect(let connect): try body.connect(connect)
        case .connack(let connack): try body.connack(connack, version)
        case .publish(let publish):
            firstByte |= publish.flags
            try body.publish(publish, version)
        case .puback(let answer), .pubrec(let answer), .pubrel(let answer), .pubcomp(let answer):
            try body.publishAnswer(answer, version)
        case .subscribe(let subscribe): try body.subscribe(subscribe, version)
        case .suback(let suback): try body.suback(suback, version)
        case .unsubscribe(let unsubscribe): try body.unsubscribe(unsubscribe, version)
        case .unsuback(let unsuback): try body.unsuback(unsuback, version)
        case .pingreq, .pingresp: break
        case .disconnect(let disconnect): try body.ending(disconnect.reasonCode, disconnect.properties, version)
        case .auth(let auth):
            guard version == .v5 else { throw .protocolError("3.1.1 has no AUTH") }
            try body.ending(auth.reasonCode, auth.properties, version)
        }
        return try write(firstByte, body.bytes, into: &buffer)
    }

    private static func write(
        _ firstByte: UInt8,
        _ body: ByteBuffer,
        into buffer: inout ByteBuffer
    ) throws(MQTTError) -> Int {
        guard body.readableBytes <= ByteBuffer.maximumVariableByteInteger else { throw MQTTWriter.tooLong }
        let start = buffer.writerIndex
        buffer.writeInteger(firstByte)
        _ = buffer.writeVariableByteInteger(body.readableBytes)
        buffer.writeImmutableBuffer(body)
        return buffer.writerIndex - start
    }
}

extension MQTTPublish {
    fileprivate var flags: UInt8 {
        (isDuplicate ? 0x08 : 0) | qualityOfService.rawValue << 1 | (isRetained ? 0x01 : 0)
    }
}

extension MQTTWriter {
    fileprivate mutating func connect(_ connect: MQTTConnect) throws(MQTTError) {
        try string("MQTT")
        byte(connect.version.rawValue)
        byte(connect.flags)
        twoBytes(connect.keepAlive)
        if connect.version == .v5 { try properties(connect.properties) }
        try string(connect.clientIdentifier)
        if let will = connect.will {
            if connect.version == .v5 { try properties(will.properties) }
            try string(will.topic)
            try binary(will.payload)
        }
        if let userName = connect.userName { try string(userName) }
        if let password = connect.password { try binary(password) }
    }

    fileprivate mutating func connack(_ connack: MQTTConnack, _ version: MQTTVersion) throws(MQTTError) {
        // [MQTT-3.2.2-6]: a refusal never says that a session is present.
        byte(connack.isSessionPresent && connack.reasonCode == .success ? 1 : 0)
        byte(version == .v5 ? connack.reasonCode.rawValue : connack.reasonCode.connectReturnCode)
        if version == .v5 { try properties(connack.properties) }
    }

    fileprivate mutating func publish(_ publish: MQTTPublish, _ version: MQTTVersion) throws(MQTTError) {
        try string(publish.topic)
        if publish.qualityOfService != .atMostOnce {
            try packetIdentifier(publish.packetIdentifier ?? 0)
        }
        if version == .v5 { try properties(publish.properties) }
        raw(publish.payload)
    }

    fileprivate mutating func publishAnswer(_ answer: MQTTPublishAnswer, _ version: MQTTVersion) throws(MQTTError) {
        try packetIdentifier(answer.packetIdentifier)
        try ending(answer.reasonCode, answer.properties, version)
    }

    /// A reason code and properties at the end of a packet; MQTT 5 leaves them out where they say nothing.
    fileprivate mutating func ending(
        _ code: MQTTReasonCode,
        _ properties: MQTTProperties,
        _ version: MQTTVersion
    ) throws(MQTTError) {
        let properties = leavesOutText ? properties.withoutText : properties
        guard version == .v5, code != .success || !properties.isEmpty else { return }
        byte(code.rawValue)
        if !properties.isEmpty { try self.properties(properties) }
    }

    fileprivate mutating func subscribe(_ subscribe: MQTTSubscribe, _ version: MQTTVersion) throws(MQTTError) {
        try packetIdentifier(subscribe.packetIdentifier)
        if version == .v5 { try properties(subscribe.properties) }
        for subscription in subscribe.subscriptions {
            try string(subscription.filter)
            byte(version == .v5 ? subscription.options : subscription.maximumQoS.rawValue)
        }
    }

    fileprivate mutating func suback(_ suback: MQTTSubscriptionAnswer, _ version: MQTTVersion) throws(MQTTError) {
        try packetIdentifier(suback.packetIdentifier)
        if version == .v5 { try properties(suback.properties) }
        // 3.1.1 knows one failure only (its [MQTT-3.9.3-2]).
        for code in suback.reasonCodes {
            byte(version == .v5 ? code.rawValue : min(code.rawValue, MQTTReasonCode.unspecifiedError.rawValue))
        }
    }

    fileprivate mutating func unsubscribe(_ unsubscribe: MQTTUnsubscribe, _ version: MQTTVersion) throws(MQTTError) {
        try packetIdentifier(unsubscribe.packetIdentifier)
        if version == .v5 { try properties(unsubscribe.properties) }
        for filter in unsubscribe.filters { try string(filter) }
    }

    fileprivate mutating func unsuback(_ unsuback: MQTTSubscriptionAnswer, _ version: MQTTVersion) throws(MQTTError) {
        try packetIdentifier(unsuback.packetIdentifier)
        guard version == .v5 else { return }
        try properties(unsuback.properties)
        for code in unsuback.reasonCodes { byte(code.rawValue) }
    }

    private mutating func packetIdentifier(_ value: UInt16) throws(MQTTError) {
        guard value != 0 else { throw .protocolError("a packet identifier is 0") }
        twoBytes(value)
    }
}

extension MQTTConnect {
    fileprivate var flags: UInt8 {
        var flags: UInt8 = isClean ? 0x02 : 0
        if let will {
            flags |= 0x04 | will.qualityOfService.rawValue << 3 | (will.isRetained ? 0x20 : 0)
        }
        if password != nil { flags |= 0x40 }
        if userName != nil { flags |= 0x80 }
        return flags
    }
}

extension MQTTSubscription {
    fileprivate var options: UInt8 {
        maximumQoS.rawValue | (isNoLocal ? 0x04 : 0) | (isRetainedAsPublished ? 0x08 : 0) | retainHandling << 4
    }
}
