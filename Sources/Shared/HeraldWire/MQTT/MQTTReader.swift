import NIOCore

/// Reads the data types of MQTT (MQTT 5 §1.5) from the body of one packet.
///
/// Every read checks the remaining bytes, so that a false length is an error and never reads outside the packet.
struct MQTTReader {
    private var bytes: ByteBuffer

    init(_ bytes: ByteBuffer) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { bytes.readableBytes == 0 }

    mutating func byte() throws(MQTTError) -> UInt8 {
        guard let value = bytes.readInteger(as: UInt8.self) else { throw Self.endsEarly }
        return value
    }

    mutating func twoBytes() throws(MQTTError) -> UInt16 {
        guard let value = bytes.readInteger(as: UInt16.self) else { throw Self.endsEarly }
        return value
    }

    mutating func fourBytes() throws(MQTTError) -> UInt32 {
        guard let value = bytes.readInteger(as: UInt32.self) else { throw Self.endsEarly }
        return value
    }

    /// A packet identifier, which is never 0 ([MQTT-2.2.1-3]).
    mutating func packetIdentifier() throws(MQTTError) -> UInt16 {
        let value = try twoBytes()
        guard value != 0 else { throw .protocolError("a packet identifier is 0") }
        return value
    }

    /// 1 to 4 bytes, as few as the number needs ([MQTT-1.5.5-1]).
    mutating func variableByteInteger() throws(MQTTError) -> Int {
        var value = 0
        for index in 0..<4 {
            let next = try byte()
            value |= Int(next & 0x7F) << (7 * index)
            if next & 0x80 == 0 {
                guard next != 0 || index == 0 else { throw Self.notMinimal }
                return value
            }
        }
        throw .malformed("a variable byte integer has more than four bytes")
    }

    /// A UTF-8 encoded string: well-formed, without surrogates and U+0000 ([MQTT-1.5.4-1], [MQTT-1.5.4-2]).
    ///
    /// A U+FEFF is kept wherever it stands ([MQTT-1.5.4-3]).
    mutating func string() throws(MQTTError) -> String {
        let length = try Int(twoBytes())
        guard let slice = bytes.readSlice(length: length) else { throw Self.endsEarly }
        let text: String? = slice.withUnsafeReadableBytes { raw in
            raw.contains(0) ? nil : String(validating: raw, as: UTF8.self)
        }
        guard let text else { throw .malformed("a string is not UTF-8, or holds U+0000") }
        return text
    }

    /// The name of a topic: at least one character, none of them a wildcard ([MQTT-4.7.3-1], [MQTT-3.3.2-2]).
    mutating func topicName() throws(MQTTError) -> String {
        let name = try string()
        guard !name.isEmpty else { throw .protocolError("a topic name is empty") }
        guard Self.hasNoWildcard(name) else { throw Self.wildcardInName }
        return name
    }

    /// A topic filter: at least one character ([MQTT-4.7.3-1]); the session checks its wildcards.
    mutating func topicFilter() throws(MQTTError) -> String {
        let filter = try string()
        guard !filter.isEmpty else { throw .malformed("a topic filter is empty") }
        return filter
    }

    mutating func binary() throws(MQTTError) -> [UInt8] {
        let length = try Int(twoBytes())
        guard let value = bytes.readBytes(length: length) else { throw Self.endsEarly }
        return value
    }

    /// All remaining bytes.
    mutating func rest() -> [UInt8] {
        bytes.readBytes(length: bytes.readableBytes) ?? []
    }

    /// A part of the packet that has a length of its own.
    mutating func part(length: Int) throws(MQTTError) -> MQTTReader {
        guard let slice = bytes.readSlice(length: length) else { throw Self.endsEarly }
        return MQTTReader(slice)
    }

    /// The remaining length must say exactly how long the packet is.
    func expectEnd() throws(MQTTError) {
        guard isAtEnd else { throw .malformed("a packet is longer than what it holds") }
    }

    static func hasNoWildcard(_ name: String) -> Bool {
        !name.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    static let endsEarly = MQTTError.malformed("a packet ends within a field")
    static let notMinimal = MQTTError.malformed("a variable byte integer is longer than its number needs")
    static let wildcardInName = MQTTError(.topicNameInvalid, "a topic name holds a wildcard")
}
