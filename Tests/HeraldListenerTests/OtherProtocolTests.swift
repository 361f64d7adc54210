import HeraldTestSupport
import Logging
import NIOCore
import NIOEmbedded
import NIOSSL
import Testing

@testable import HeraldListener

/// Stands in for a port's protocol behind TLS: it writes at once, as HTTP/2 does, and keeps what it reads.
private final class Spoken: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    var read = ""

    func handlerAdded(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "SETTINGS")), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        read += String(buffer: unwrapInboundIn(data))
    }
}

@Suite struct OtherProtocolTests {
    private let channel = EmbeddedChannel()
    private let notes = LogNotes(logLevel: .debug)
    private var log: RefusalLog { RefusalLog(listener: "test", logger: notes.logger) { _ in nil } }

    private func told(_ bytes: [UInt8]) -> OtherProtocol? { OtherProtocol(ByteBuffer(bytes: bytes).readableBytesView) }

    private func connect() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    private func sent() throws -> [UInt8] {
        var all: [UInt8] = []
        while let part = try channel.readOutbound(as: ByteBuffer.self) { all += Array(part.readableBytesView) }
        return all
    }

    @Test(arguments: [
        ("GET / HTTP/1.1", OtherProtocol.http1(isHead: false)), ("HEAD /x", .http1(isHead: true)),
        ("CONNECT a:1", .http1(isHead: false)),
        ("PRI * HTTP/2.0", .http2), ("\u{10}\u{0C}\u{0}\u{4}MQTT\u{5}", .mqtt(isVersion5: true)),
        ("\u{10}\u{7F}\u{0}\u{4}MQTT\u{4}", .mqtt(isVersion5: false)), ("\u{10}aaaaaaaaaaaa", .unknown),
        ("get /", .unknown),
        ("\u{1}binary", .unknown), ("SSH-2.0", .unknown), ("AAAAAAAAAAAAAAAAAAAAAAAA", .unknown),
    ])
    func `a protocol is told by its first bytes`(text: String, expected: OtherProtocol) {
        let bytes = Array(text.utf8)
        #expect(told(bytes) == expected)
        // Whatever pieces it comes in, the first verdict is the same.
        let early = (1...bytes.count).lazy.compactMap { told(Array(bytes.prefix($0))) }.first
        #expect(early == expected)
    }

    @Test func `records of TLS are left to TLS`() {
        for first: UInt8 in [20, 21, 22, 23, 0x80, 0xFF] {
            #expect(OtherProtocol.isTLS(ByteBuffer(bytes: [first]).readableBytesView))
        }
        #expect(!OtherProtocol.isTLS(ByteBuffer(string: "GET").readableBytesView))
        #expect(OtherProtocol.isTLS(ByteBuffer().readableBytesView))
    }

    @Test func `a client without TLS gets a sentence in its protocol, and two seconds to read it`() throws {
        let reader = ServerNameReader(words: "speaks TLS")
        let handshake = HandshakeHandler(
            connection: nil,
            tls: NIOSSLServerHandler(context: try NIOSSLContext(configuration: .makeClientConfiguration())),
            nameReader: reader,
            timeout: .seconds(10),
            refusals: log
        ) { _, _ in }
        try channel.pipeline.syncOperations.addHandlers([reader, handshake])
        try connect()
        for piece in ["GE", "T / HTTP/1.1\r\n\r\n", "more"] { try channel.writeInbound(ByteBuffer(string: piece)) }
        let answer = String(decoding: try sent(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n") && answer.hasSuffix("\r\n\r\nspeaks TLS\n"))
        #expect(answer.contains("content-length: 11\r\n"))
        #expect(notes.reasons == ["the peer does not speak TLS"])
        channel.embeddedEventLoop.advanceTime(by: TLSShutdown.longestWait)
        #expect(!channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(notes.reasons.count == 1)
    }

    @Test func `answers for MQTT and HTTP-2 are packets of theirs`() {
        let words = "words"
        #expect(Array(OtherProtocol.mqtt(isVersion5: false).answer(words).readableBytesView) == [0x20, 2, 0, 5])
        #expect(
            Array(OtherProtocol.mqtt(isVersion5: true).answer(words).readableBytesView)
                == [0x20, 11, 0, 0x87, 8, 0x1F, 0, 5] + Array(words.utf8)
        )
        let frames = Array(OtherProtocol.http2.answer(words).readableBytesView)
        #expect(frames.count == 9 + 9 + 8 + 5 && frames[3] == 4 && frames[9 + 3] == 7 && frames[9 + 2] == 13)
        #expect(
            OtherProtocol.http1(isHead: true).answer(words).readableBytes
                < OtherProtocol.http1(isHead: false).answer(words).readableBytes
        )
    }

    @Test func `HTTP 1 over TLS gets a sentence, and nothing of the port's protocol`() throws {
        let spoken = Spoken()
        try channel.pipeline.syncOperations.addHandlers([HTTP1Answer("speaks HTTP/2 only", refusals: log), spoken])
        try connect()
        try channel.writeInbound(ByteBuffer(string: "POST /3/device/00 HTTP/1.1\r\n\r\n"))
        let answer = String(decoding: try sent(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.hasSuffix("speaks HTTP/2 only\n"))
        #expect(spoken.read.isEmpty && !channel.isActive)
        #expect(notes.reasons == ["speaks HTTP/2 only"])
    }

    @Test func `another client gets the port's protocol with its first bytes`() throws {
        let spoken = Spoken()
        try channel.pipeline.syncOperations.addHandlers([HTTP1Answer("", refusals: log), spoken])
        try connect()
        #expect(try sent().isEmpty)
        try channel.writeInbound(ByteBuffer(string: "PR"))
        #expect(try sent().isEmpty && spoken.read.isEmpty)
        try channel.writeInbound(ByteBuffer(string: "I * HTTP/2.0"))
        #expect(String(decoding: try sent(), as: UTF8.self) == "SETTINGS")
        try channel.writeInbound(ByteBuffer(string: "+"))
        #expect(spoken.read == "PRI * HTTP/2.0+")
        #expect(throws: (any Error).self) { try channel.pipeline.syncOperations.handler(type: HTTP1Answer.self) }
    }

    @Test func `what is held is sent before this side closes`() throws {
        try channel.pipeline.syncOperations.addHandlers([HTTP1Answer("", refusals: log), Spoken()])
        try connect()
        channel.pipeline.close(promise: nil)
        #expect(String(decoding: try sent(), as: UTF8.self) == "SETTINGS")
    }
}
