import NIOCore

/// Reads the server name out of a client's first TLS record on its way to the TLS handler, and then only passes on.
///
/// The record goes on in one piece as soon as it is complete, so that the handshake begins once. What is no record, or no
/// ClientHello, or has no name, is TLS's to judge.
final class ServerNameReader: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The name that the client asked for; nil until it is read, and if there is none.
    private(set) var name: String?
    /// What has come of the record; nil once it has been passed on.
    private var record: ByteBuffer? = ByteBuffer()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard var record else { return context.fireChannelRead(data) }
        var bytes = unwrapInboundIn(data)
        if record.readableBytes == 0 {
            record = bytes
        } else {
            // Taken out while it grows, so that it is not copied.
            self.record = nil
            record.writeBuffer(&bytes)
        }
        guard ClientHello.isComplete(record) else {
            self.record = record
            return
        }
        self.record = nil
        name = ClientHello.serverName(in: record)
        context.fireChannelRead(wrapInboundOut(record))
    }

    func channelInactive(context: ChannelHandlerContext) {
        passOn(context)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        record = nil
    }

    private func passOn(_ context: ChannelHandlerContext) {
        guard let record, record.readableBytes > 0 else { return }
        self.record = nil
        context.fireChannelRead(wrapInboundOut(record))
    }
}

/// The first message of a TLS handshake, as far as the server name is concerned (RFC 8446 §4.1.2, RFC 6066 §3).
enum ClientHello {
    /// RFC 8446 §5.1, and what older versions may add.
    private static let longestRecord = 16_384 + 256

    /// Whether nothing is gained by waiting for more: the record is there, or it is none.
    static func isComplete(_ bytes: ByteBuffer) -> Bool {
        guard let type: UInt8 = bytes.getInteger(at: bytes.readerIndex) else { return false }
        guard type == 22 else { return true }
        guard let length: UInt16 = bytes.getInteger(at: bytes.readerIndex + 3) else { return false }
        return length > longestRecord || bytes.readableBytes >= 5 + Int(length)
    }

    /// The host name that the client asks for; nil if there is none, or the bytes are none of a client.
    static func serverName(in bytes: ByteBuffer) -> String? {
        var bytes = bytes
        guard bytes.readInteger(as: UInt8.self) == 22, bytes.readInteger(as: UInt16.self) != nil,
            var message = bytes.readLengthPrefixedSlice(as: UInt16.self),
            message.readInteger(as: UInt8.self) == 1, message.readBytes(length: 3) != nil,
            // Version and random, then the session, the cipher suites and the ways to compress.
            message.readSlice(length: 34) != nil,
            message.readLengthPrefixedSlice(as: UInt8.self) != nil,
            message.readLengthPrefixedSlice(as: UInt16.self) != nil,
            message.readLengthPrefixedSlice(as: UInt8.self) != nil,
            var extensions = message.readLengthPrefixedSlice(as: UInt16.self)
        else { return nil }
        while let type: UInt16 = extensions.readInteger(),
            let content = extensions.readLengthPrefixedSlice(as: UInt16.self)
        {
            if type == 0 { return hostName(content) }
        }
        return nil
    }

    private static func hostName(_ content: ByteBuffer) -> String? {
        var content = content
        guard var names = content.readLengthPrefixedSlice(as: UInt16.self) else { return nil }
        while let type: UInt8 = names.readInteger(), let name = names.readLengthPrefixedSlice(as: UInt16.self) {
            guard type == 0 else { continue }
            // RFC 6066: ASCII without a final dot; a DNS name has 253 characters at the most.
            guard (1...253).contains(name.readableBytes), name.readableBytesView.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { return nil }
            return String(buffer: name)
        }
        return nil
    }
}
