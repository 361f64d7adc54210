package import NIOCore

/// A PUBLISH that is written straight from bytes, for hot paths.
///
/// RETAIN is always 0. Reuse one ``MQTTPropertyBlock``, and keep the topics' bytes: writing then allocates nothing but
/// room in the buffer.
package struct MQTTOutgoingPublish: Sendable {
    /// UTF-8, at most 65,535 bytes.
    package let topic: [UInt8]
    /// Not 0 for QoS 1; nil for QoS 0.
    package let packetIdentifier: UInt16?
    package let isDuplicate: Bool

    package init(topic: [UInt8], packetIdentifier: UInt16?, isDuplicate: Bool = false) {
        self.topic = topic
        self.packetIdentifier = packetIdentifier
        self.isDuplicate = isDuplicate
    }

    /// Bytes of the whole packet, to compare with the peer's maximum packet size; in 3.1.1 `properties` is nil.
    package func size(_ properties: MQTTPropertyBlock?, payloadBytes: Int) -> Int {
        let remaining = remainingLength(properties?.bytes.readableBytes, payloadBytes)
        return 1 + ByteBuffer.variableByteIntegerSize(remaining) + remaining
    }

    /// Appends the packet.
    /// - Returns: False, with nothing written, if a field is longer than MQTT can carry.
    package func write(
        _ properties: MQTTPropertyBlock?,
        payload: [UInt8],
        into buffer: inout ByteBuffer
    ) -> Bool {
        let propertyBytes = properties?.bytes.readableBytes
        let remaining = remainingLength(propertyBytes, payload.count)
        guard let topicLength = UInt16(exactly: topic.count), remaining <= ByteBuffer.maximumVariableByteInteger else {
            return false
        }
        buffer.reserveCapacity(minimumWritableBytes: remaining + 5)
        let duplicate: UInt8 = isDuplicate ? 0x08 : 0
        buffer.writeInteger(0x30 | (packetIdentifier == nil ? 0 : 0x02) | duplicate)
        _ = buffer.writeVariableByteInteger(remaining)
        buffer.writeInteger(topicLength)
        buffer.writeBytes(topic)
        if let packetIdentifier { buffer.writeInteger(packetIdentifier) }
        if let propertyBytes {
            _ = buffer.writeVariableByteInteger(propertyBytes)
            if let bytes = properties?.bytes { buffer.writeImmutableBuffer(bytes) }
        }
        buffer.writeBytes(payload)
        return true
    }

    private func remainingLength(_ propertyBytes: Int?, _ payloadBytes: Int) -> Int {
        let properties = propertyBytes.map { ByteBuffer.variableByteIntegerSize($0) + $0 } ?? 0
        return 2 + topic.count + (packetIdentifier == nil ? 0 : 2) + properties + payloadBytes
    }
}
