import HeraldTrust
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
            #expect(ClientHello.isComplete(part) == (length == Self.named.readableBytes))
            #expect([nil, "push.example.com"].contains(ClientHello.serverName(in: part)))
        }
        for place in 0..<Self.named.readableBytes {
            var bytes = Self.named
            bytes.setInteger(0xFF as UInt8, at: place)
            // Never more than what the bytes hold.
            #expect((ClientHello.serverName(in: bytes) ?? "").utf8.count <= 253)
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
        #expect(ClientHello.serverName(in: Self.hello([Self.name(name)])) == nil)
        #expect(ClientHello.serverName(in: Self.hello([])) == nil)
    }
}
