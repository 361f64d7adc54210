import NIOCore

/// The bytes of a ClientHello as they come, in any number of records and pieces.
///
/// A client can cut the message wherever it likes. Its handshake may begin only when the last byte is there: otherwise a
/// crowd takes its turns with the first bytes, and sends the others all at once.
struct ClientHelloBuffer {
    /// RFC 8446 §5.1, with the overhead of older versions.
    private static let longestRecord = 16_384 + 256
    /// The message's header, and the longest content that BoringSSL takes.
    private static let longestMessage = 4 + 16_384
    /// Records without meaning that BoringSSL ignores before the message.
    private static let mostIgnored = 32

    /// All bytes so far.
    private(set) var bytes = ByteBuffer()
    /// The message so far, without the headers of its records.
    private var message = ByteBuffer()
    /// Number of bytes in the records that were read.
    private var read = 0
    /// Number of change_cipher_spec records that may still come (RFC 8446 §5).
    private var ignored: Int

    /// - Parameter isSecond: Whether the client was asked for it; then a change_cipher_spec record may come first.
    init(isSecond: Bool = false) {
        ignored = isSecond ? Self.mostIgnored : 0
    }

    /// The host name in the server name extension of a complete message; nil if there is none.
    var serverName: String? { ClientHello.serverName(in: message) }

    /// Adds bytes that came.
    /// - Returns: Whether the message is complete, or TLS will refuse these bytes.
    mutating func append(_ more: ByteBuffer) -> Bool {
        if bytes.readableBytes == 0 { bytes = more } else { bytes.writeImmutableBuffer(more) }
        while true {
            let start = bytes.readerIndex + read
            guard let type: UInt8 = bytes.getInteger(at: start) else { return false }
            guard type == 22 || type == 20 && ignored > 0 else { return true }
            guard let length: UInt16 = bytes.getInteger(at: start + 3) else { return false }
            // Longer change_cipher_spec records than the valid one would make each connection hold much.
            guard (1...(type == 20 ? 1 : Self.longestRecord)).contains(Int(length)) else { return true }
            guard var content = bytes.getSlice(at: start + 5, length: Int(length)) else { return false }
            read += 5 + Int(length)
            if type == 20 {
                ignored -= 1
            } else {
                ignored = 0
                message.writeBuffer(&content)
                if isMessageOver { return true }
            }
        }
    }

    /// Whether the message is complete, is longer than any, or is another one.
    private var isMessageOver: Bool {
        guard message.getInteger(at: message.readerIndex, as: UInt8.self) == 1 else { return true }
        guard let header: UInt32 = message.getInteger(at: message.readerIndex) else { return false }
        let length = 4 + Int(header & 0xFF_FFFF)
        return length > Self.longestMessage || message.readableBytes >= length
    }
}
