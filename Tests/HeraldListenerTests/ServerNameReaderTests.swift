import HeraldIdentity
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

@Suite struct ServerNameReaderTests {
    /// A ClientHello as clients write it, with these extensions.
    private static func hello(_ extensions: [(type: UInt16, content: [UInt8])]) -> ByteBuffer {
        var list = ByteBuffer()
        for (type, content) in extensions {
            list.writeInteger(type)
            list.writeInteger(UInt16(content.count))
            list.writeBytes(content)
        }
        var body = ByteBuffer()
        body.writeInteger(0x0303 as UInt16)
        body.writeRepeatingByte(7, count: 32)
        body.writeInteger(32 as UInt8)
        body.writeRepeatingByte(9, count: 32)
        body.writeBytes([0, 4, 0x13, 0x01, 0x13, 0x02, 1, 0])
        body.writeInteger(UInt16(list.readableBytes))
        body.writeBuffer(&list)
        var record = ByteBuffer(bytes: [22, 3, 1])
        record.writeInteger(UInt16(body.readableBytes + 4))
        record.writeBytes([1, 0])
        record.writeInteger(UInt16(body.readableBytes))
        record.writeBuffer(&body)
        return record
    }

    private static func name(_ name: String) -> (type: UInt16, content: [UInt8]) {
        let bytes = Array(name.utf8)
        let length = UInt8(bytes.count)
        return (0, [0, length + 3, 0, 0, length] + bytes)
    }

    private static let named = hello([(43, [2, 3, 4]), name("push.example.com"), (16, [0, 1, 2])])

    @Test func `reads the name, and passes the record on unchanged`() throws {
        let channel = EmbeddedChannel()
        let reader = ServerNameReader()
        try channel.pipeline.syncOperations.addHandler(reader)
        try channel.writeInbound(Self.named)
        #expect(reader.name == "push.example.com")
        #expect(try channel.readInbound(as: ByteBuffer.self) == Self.named)
        try channel.writeInbound(ByteBuffer(string: "more"))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "more"))
    }

    @Test func `passes a record in pieces on as one, with the bytes behind it`() throws {
        let channel = EmbeddedChannel()
        let reader = ServerNameReader()
        try channel.pipeline.syncOperations.addHandler(reader)
        for byte in Self.named.readableBytesView.dropLast() {
            try channel.writeInbound(ByteBuffer(bytes: [byte]))
            #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        }
        var last = ByteBuffer(bytes: Self.named.readableBytesView.suffix(1))
        last.writeString("behind")
        try channel.writeInbound(last)
        var all = Self.named
        all.writeString("behind")
        #expect(try channel.readInbound(as: ByteBuffer.self) == all)
        #expect(reader.name == "push.example.com")
    }

    /// The same message in records of so many bytes.
    private static func inRecords(of size: Int, _ hello: ByteBuffer = named) -> ByteBuffer {
        var message = hello.readableBytesView.dropFirst(5)
        var records = ByteBuffer()
        while !message.isEmpty {
            records.writeBytes([22, 3, 1])
            records.writeInteger(UInt16(min(size, message.count)))
            records.writeBytes(message.prefix(size))
            message = message.dropFirst(size)
        }
        return records
    }

    @Test(arguments: [1, 3, 4, 50])
    func `a message in several records is passed on when it is complete`(size: Int) throws {
        let channel = EmbeddedChannel()
        let reader = ServerNameReader()
        try channel.pipeline.syncOperations.addHandler(reader)
        let records = Self.inRecords(of: size)
        for byte in records.readableBytesView.dropLast() { try channel.writeInbound(ByteBuffer(bytes: [byte])) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        try channel.writeInbound(ByteBuffer(bytes: records.readableBytesView.suffix(1)))
        #expect(try channel.readInbound(as: ByteBuffer.self) == records)
        #expect(reader.name == "push.example.com")
    }

    @Test func `a message that is too long for TLS is passed on at once`() {
        var records = Self.inRecords(of: 4)
        // The length of the message.
        records.setInteger(64 as UInt8, at: records.readerIndex + 6)
        var hello = ClientHelloBuffer()
        let isOver = hello.append(ByteBuffer(bytes: records.readableBytesView.prefix(9)))
        #expect(isOver)
    }

    /// A HelloRetryRequest, as a server's first answer.
    private static let retryRequest: ByteBuffer = {
        var record = ByteBuffer(bytes: [22, 3, 3, 0, 88, 2, 0, 0, 84, 3, 3])
        record.writeBytes([
            0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
            0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
        ])
        record.writeRepeatingByte(0, count: 50)
        return record
    }()

    /// A reader whose queue has no room left, after a first ClientHello and its answer.
    private static func answered(by answer: ByteBuffer) throws -> (EmbeddedChannel, HandshakeQueue) {
        let channel = EmbeddedChannel()
        let queue = HandshakeQueue(channel.eventLoop)
        try channel.pipeline.syncOperations.addHandler(ServerNameReader(turns: queue))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(named)
        #expect(try channel.readInbound(as: ByteBuffer.self) == named)
        try channel.writeOutbound(answer)
        #expect(try channel.readOutbound(as: ByteBuffer.self) == answer)
        while queue.begins(of: ClientAddress(ipv4: 1).network, later: { false }) {}
        return (channel, queue)
    }

    @Test func `a second ClientHello, asked for by HelloRetryRequest, waits for a turn of its own`() throws {
        let (channel, _) = try Self.answered(by: Self.retryRequest)
        var second = ByteBuffer(bytes: [20, 3, 3, 0, 1, 1])
        second.writeImmutableBuffer(Self.inRecords(of: 60))
        for byte in second.readableBytesView { try channel.writeInbound(ByteBuffer(bytes: [byte])) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        channel.embeddedEventLoop.advanceTime(by: HandshakeQueue.pause)
        #expect(try channel.readInbound(as: ByteBuffer.self) == second)
        // What follows is not held.
        let rest = ByteBuffer(bytes: [23, 3, 3, 0, 1])
        try channel.writeInbound(rest)
        #expect(try channel.readInbound(as: ByteBuffer.self) == rest)
    }

    @Test func `before a second ClientHello, few bytes are held`() throws {
        let (channel, queue) = try Self.answered(by: Self.retryRequest)
        // RFC 8446 §5: a change_cipher_spec record has one byte.
        for _ in 0..<32 { try channel.writeInbound(ByteBuffer(bytes: [20, 3, 3, 0, 1, 1])) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        try channel.writeInbound(ByteBuffer(bytes: [20, 3, 3, 0, 1, 1]))
        while queue.begins(of: ClientAddress(ipv4: 1).network, later: { false }) {}
        channel.embeddedEventLoop.advanceTime(by: HandshakeQueue.pause)
        #expect(try channel.readInbound(as: ByteBuffer.self)?.readableBytes == 33 * 6)
        for length in [0, 2, 16_640] as [UInt16] {
            var hello = ClientHelloBuffer(isSecond: true)
            let isOver = hello.append(ByteBuffer(bytes: [20, 3, 3, UInt8(length >> 8), UInt8(length & 0xFF)]))
            #expect(isOver, "\(length) bytes are not waited for")
        }
    }

    @Test func `without HelloRetryRequest, nothing after the ClientHello waits`() throws {
        var answer = Self.retryRequest
        answer.setInteger(0 as UInt8, at: answer.readerIndex + 20)
        let (channel, _) = try Self.answered(by: answer)
        try channel.writeInbound(Self.named)
        #expect(try channel.readInbound(as: ByteBuffer.self) == Self.named)
    }

    @Test func `an alert in place of the second ClientHello is read, and passed on`() throws {
        let (channel, _) = try Self.answered(by: Self.retryRequest)
        let alert = ByteBuffer(bytes: [21, 3, 3, 0, 2, 2, 40])
        try channel.writeInbound(alert)
        channel.embeddedEventLoop.advanceTime(by: HandshakeQueue.pause)
        #expect(try channel.readInbound(as: ByteBuffer.self) == alert)
        let reader = try channel.pipeline.syncOperations.handler(type: ServerNameReader.self)
        #expect(reader.alert != nil)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n", "\u{16}\u{3}\u{1}\u{0}\u{2}no more", ""])
    func `passes on at once what is not a ClientHello`(text: String) throws {
        let channel = EmbeddedChannel()
        let reader = ServerNameReader()
        try channel.pipeline.syncOperations.addHandler(reader)
        try channel.writeInbound(ByteBuffer(string: text))
        #expect(reader.name == nil)
        if !text.isEmpty { #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(string: text)) }
    }

    @Test func `a truncated or corrupt ClientHello has no name or the right one`() {
        for length in 0...Self.named.readableBytes {
            let part = Self.named.getSlice(at: 0, length: length) ?? ByteBuffer()
            var hello = ClientHelloBuffer()
            let isOver = hello.append(part)
            #expect(isOver == (length == Self.named.readableBytes))
            #expect(hello.serverName == (length == Self.named.readableBytes ? "push.example.com" : nil))
        }
        for place in 0..<Self.named.readableBytes {
            var bytes = Self.named
            bytes.setInteger(0xFF as UInt8, at: place)
            var hello = ClientHelloBuffer()
            _ = hello.append(bytes)
            // Never more than what the bytes hold.
            #expect((hello.serverName ?? "").utf8.count <= 253)
        }
    }

    @Test func `reads an alert that is not encrypted, and nothing else as one`() throws {
        func alert(_ bytes: [UInt8]) throws -> String? {
            let channel = EmbeddedChannel()
            let reader = ServerNameReader()
            try channel.pipeline.syncOperations.addHandler(reader)
            try channel.writeInbound(Self.named)
            try channel.writeInbound(ByteBuffer(bytes: bytes))
            return reader.alert?.name
        }
        #expect(try alert([21, 3, 3, 0, 2, 2, 48]) == "unknown_ca")
        #expect(try alert([21, 3, 3, 0, 2, 2, 80]) == "80")
        #expect(try alert([21, 3, 3, 0, 2, 2]) == nil)
        #expect(try alert([21, 3, 3, 0, 19, 2, 48]) == nil)
        #expect(try alert([23, 3, 3, 0, 2, 2, 48]) == nil)
    }

    @Test(arguments: ["", "two words", "caf\u{e9}"])
    func `an invalid name counts as none`(name: String) {
        for bytes in [Self.hello([Self.name(name)]), Self.hello([])] {
            var hello = ClientHelloBuffer()
            let isOver = hello.append(bytes)
            #expect(isOver && hello.serverName == nil)
        }
    }
}
