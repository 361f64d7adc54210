import NIOCore

/// Header block of a message: the version with an optional status, lines, and an empty line.
///
/// Any client may send a block, and servers keep it unread, and append fields of their own to it. One that is malformed does
/// not end the connection, has no status, and still has the fields that a server appended.
enum NATSHeaderBlock {
    static let version: StaticString = "NATS/1.0"

    static func read(_ block: ByteBuffer) -> (status: NATSStatus?, lines: ByteBuffer) {
        let bytes = block.readableBytesView
        let name = version.utf8CodeUnitCount
        guard !bytes.isEmpty else { return (nil, block) }
        guard bytes.suffix(4).elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]), let end = bytes.firstIndex(of: 0x0A) else {
            return (nil, ByteBuffer())
        }
        // The last line feed is that of the empty line; a block without fields is `NATS/1.0`, CRLF, CRLF.
        let length = max(0, bytes.endIndex - 2 - (end + 1))
        let lines = block.getSlice(at: end + 1, length: length) ?? ByteBuffer()
        let isVersion = version.withUTF8Buffer { bytes.prefix(name).elementsEqual($0) }
        guard isVersion, bytes[end - 1] == 0x0D else {
            // Behind an empty line, no field of it is the first one.
            var malformed = ByteBuffer(string: "\r\n")
            malformed.writeImmutableBuffer(lines)
            return (nil, malformed)
        }
        return (status(bytes[(bytes.startIndex + name)..<end]), lines)
    }

    /// ` 503 No Responders`: three digits, then words.
    private static func status(_ line: ByteBufferView) -> NATSStatus? {
        let text = line.drop { $0 == 0x20 }
        guard text.count >= 3, let code = Decimal.read(text.prefix(3)) else { return nil }
        let rest = text.dropFirst(3)
        if let next = rest.first, next != 0x20, next != 0x0D { return nil }
        let words = String(decoding: rest.filter { $0 >= 0x20 }, as: UTF8.self)
        return NATSStatus(code: Int(code), description: String(words.drop { $0 == " " }))
    }
}
