import HeraldTestSupport
import Logging
import NIOCore
import NIOEmbedded
import NIOSSL
import Testing

@testable import HeraldListener

/// Stands in for TLS: reports the end of a connection during the handshake as an error.
private final class TLS: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelInactive(context: ChannelHandlerContext) {
        context.fireErrorCaught(NIOSSLError.uncleanShutdown)
        context.fireChannelInactive()
    }
}

@Suite struct HandshakeHandlerTests {
    private let channel = EmbeddedChannel()
    private let handler: HandshakeHandler
    private let notes = LogNotes(logLevel: .debug)
    private var told: [String] { notes.reasons }

    init() throws {
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        handler = HandshakeHandler(
            connection: nil,
            tls: NIOSSLServerHandler(context: context),
            nameReader: ServerNameReader(),
            timeout: .seconds(10),
            refusals: RefusalLog(listener: "test", logger: notes.logger) { _ in nil }
        ) { _, _ in }
        try channel.pipeline.syncOperations.addHandlers([TLS(), handler])
    }

    private func connect() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    @Test func `a handshake timeout is logged once`() throws {
        try connect()
        channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(channel.isActive && told.isEmpty)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
        #expect(told == ["the client did not complete the TLS handshake in time"])
    }

    @Test func `a handshake failure is logged once, and not as a timeout later`() throws {
        try connect()
        channel.pipeline.fireErrorCaught(NIOSSLError.uncleanShutdown)
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(told.count == 1)
        #expect(told != ["the client did not complete the TLS handshake in time"])
    }

    /// As when the channel closes before it became active.
    @Test func `a handler that is removed cancels its timeout`() throws {
        try channel.pipeline.syncOperations.removeHandler(handler).wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(told == [])
    }
}
