import NIOCore

/// Parser of the first message of a TLS handshake: finds the server name (RFC 8446 §4.1.2, RFC 6066 §3).
enum ClientHello {
    /// The random value of a ServerHello that asks for another ClientHello (RFC 8446 §4.1.3).
    private static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
        0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
    ]

    /// Whether a server's first bytes are a HelloRetryRequest.
    static func isAskedForAgain(by bytes: ByteBuffer) -> Bool {
        // Behind the headers of record and message, and the version.
        let random = bytes.readableBytesView.dropFirst(5 + 4 + 2).prefix(retryRandom.count)
        return bytes.readableBytesView.first == 22 && random.elementsEqual(retryRandom)
    }

    /// The host name in the server name extension; nil if there is none or the bytes are not a ClientHello.
    ///
    /// The message comes without the headers of its records.
    static func serverName(in message: ByteBuffer) -> String? {
        var message = message
        guard message.readInteger(as: UInt8.self) == 1, message.readBytes(length: 3) != nil,
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
