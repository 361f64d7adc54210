import HeraldModel
import NIOCore

/// Writes the data types of MQTT (MQTT 5 §1.5) at the end of a buffer.
struct MQTTWriter {
    private(set) var bytes: ByteBuffer
    var leavesOutText = false

    init(_ bytes: ByteBuffer = ByteBuffer()) {
        self.bytes = bytes
    }

    mutating func byte(_ value: UInt8) {
        bytes.writeInteger(value)
    }

    mutating func twoBytes(_ value: UInt16) {
        bytes.writeInteger(value)
    }

    mutating func fourBytes(_ value: UInt32) {
        bytes.writeInteger(value)
    }

    /// Writes no character for which a receiver may refuse the packet (MQTT 5 §1.5.4).
    mutating func string(_ text: String) throws(MQTTError) {
        guard let length = UInt16(exactly: text.utf8.count) else { throw Self.tooLong }
        guard text.unicodeScalars.allSatisfy(\.isAllowedInMQTT) else { throw .forbiddenCharacter }
        bytes.writeInteger(length)
        bytes.writeString(text)
    }

    mutating func binary(_ value: [UInt8]) throws(MQTTError) {
        guard let length = UInt16(exactly: value.count) else { throw Self.tooLong }
        bytes.writeInteger(length)
        bytes.writeBytes(value)
    }

    mutating func raw(_ value: [UInt8]) {
        bytes.writeBytes(value)
    }

    mutating func properties(_ properties: MQTTProperties) throws(MQTTError) {
        let properties = leavesOutText ? properties.withoutText : properties
        guard !properties.isEmpty else {
            bytes.writeInteger(UInt8(0))
            return
        }
        var block = MQTTPropertyBlock()
        for property in properties.entries { try block.append(property) }
        try variableByteInteger(block.bytes.readableBytes)
        bytes.writeImmutableBuffer(block.bytes)
    }

    mutating func variableByteInteger(_ value: Int) throws(MQTTError) {
        guard bytes.writeVariableByteInteger(value) else { throw Self.tooLong }
    }

    static let tooLong = MQTTError(.packetTooLarge, "a field is longer than MQTT can carry")
}

extension ByteBuffer {
    /// The largest number that a variable byte integer can carry, and so the largest remaining length.
    static let maximumVariableByteInteger = 268_435_455

    /// Writes a number of 0 to 268,435,455 in 1 to 4 bytes (MQTT 5 §1.5.5).
    /// - Returns: Whether the number is in that range; nothing is written if not.
    mutating func writeVariableByteInteger(_ value: Int) -> Bool {
        guard (0...ByteBuffer.maximumVariableByteInteger).contains(value) else { return false }
        var rest = value
        while rest > 0x7F {
            writeInteger(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        writeInteger(UInt8(rest))
        return true
    }

    static func variableByteIntegerSize(_ value: Int) -> Int {
        value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : 4
    }
}
