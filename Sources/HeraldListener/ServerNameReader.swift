package import HeraldTrust
package import NIOCore

/// Reads the server name in the client's first TLS record, and the unencrypted alert of a client that gives up.
///
/// It passes the record on in one piece once it is complete and the handshake's turn has come, so the handshake begins
/// once. The TLS handler judges everything that is not a ClientHello with a name.
package final class ServerNameReader: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    /// The server name of the ClientHello; nil until it is read, and if there is none.
    private(set) var name: String?
    /// The alert that the client sent without encryption after its ClientHello.
    ///
    /// OpenSSL does so under TLS 1.3 when it refuses the server's certificate. BoringSSL expects an encrypted record
    /// there and only reports its length.
    package private(set) var alert: TLSAlert?
    /// The bytes of the first record so far; nil once it is passed on.
    private var record: ByteBuffer? = ByteBuffer()
    private var isWaiting = false
    private let turns: HandshakeQueue?
    private let hasBegun: () -> Void

    /// - Parameters:
    ///   - turns: Says when the handshake may begin; nil for at once.
    ///   - hasBegun: Called when the handshake begins.
    init(turns: HandshakeQueue? = nil, hasBegun: @escaping () -> Void = {}) {
        self.turns = turns
        self.hasBegun = hasBegun
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard var record else {
            alert = TLSAlert(record: bytes.readableBytesView) ?? alert
            return context.fireChannelRead(data)
        }
        if record.readableBytes == 0 {
            record = bytes
        } else {
            // Taken out while it grows, so that it is not copied.
            self.record = nil
            record.writeBuffer(&bytes)
        }
        self.record = record
        guard !isWaiting, ClientHello.isComplete(record) else { return }
        name = ClientHello.serverName(in: record)
        if let turns, !turns.begins(of: Self.network(context.channel), later: { self.begin(context) }) {
            isWaiting = true
            // Its bytes stay in the socket meanwhile.
            return setReading(false, context)
        }
        hasBegun()
        passOn(context)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        // A handshake that never had its turn costs nothing.
        if !isWaiting { passOn(context) }
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        record = nil
    }

    /// The handshake's turn has come.
    private func begin(_ context: ChannelHandlerContext) -> Bool {
        isWaiting = false
        guard record != nil, context.channel.isActive else { return false }
        hasBegun()
        passOn(context)
        setReading(true, context)
        context.fireChannelReadComplete()
        return true
    }

    private static func network(_ channel: any Channel) -> ClientNetwork {
        channel.clientAddress?.network ?? ClientNetwork(nil)
    }

    private func setReading(_ reads: Bool, _ context: ChannelHandlerContext) {
        // Fails only on a channel that is closed.
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    private func passOn(_ context: ChannelHandlerContext) {
        guard let record, record.readableBytes > 0 else { return }
        self.record = nil
        context.fireChannelRead(wrapInboundOut(record))
    }
}

/// Parser of the first message of a TLS handshake: finds the server name (RFC 8446 §4.1.2, RFC 6066 §3).
enum ClientHello {
    /// RFC 8446 §5.1, with the overhead of older versions.
    private static let longestRecord = 16_384 + 256

    /// Whether the record is complete, or the bytes are not a handshake record.
    static func isComplete(_ bytes: ByteBuffer) -> Bool {
        guard let type: UInt8 = bytes.getInteger(at: bytes.readerIndex) else { return false }
        guard type == 22 else { return true }
        guard let length: UInt16 = bytes.getInteger(at: bytes.readerIndex + 3) else { return false }
        return length > longestRecord || bytes.readableBytes >= 5 + Int(length)
    }

    /// The host name in the server name extension; nil if there is none or the bytes are not a ClientHello.
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
