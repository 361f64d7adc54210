import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

/// Stands in for TLS: passes closes on and remembers them.
private final class TLS: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var ends: [CloseMode] = []

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        ends.append(mode)
        context.close(mode: mode, promise: promise)
    }
}

private final class LastHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private(set) var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }
}

@Suite struct TLSShutdownTests {
    private let channel = EmbeddedChannel()
    private let tls = TLS()
    private let handler = LastHandler()
    private let wheel: DeadlineWheel

    init() throws {
        wheel = DeadlineWheel(eventLoop: channel.embeddedEventLoop, tick: .milliseconds(100))
        try channel.pipeline.syncOperations.addHandlers([tls, handler])
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    private func begin() throws {
        TLSShutdown.beginWithTLS(try #require(handler.context), wheel: wheel)
    }

    @Test func `sends close_notify, and keeps the socket open until the wait is over`() throws {
        try begin()
        #expect(tls.ends == [.output])
        channel.embeddedEventLoop.advanceTime(by: TLSShutdown.longestWait - .milliseconds(1))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(101))
        #expect(!channel.isActive)
        // The wait ends beneath TLS, which would begin another.
        #expect(tls.ends == [.output])
    }

    @Test func `a peer that ends the connection ends the wait, and nothing of it is kept`() throws {
        weak var shutdown: TLSShutdown?
        try begin()
        shutdown = try channel.pipeline.syncOperations.handler(type: TLSShutdown.self)
        #expect(shutdown != nil)
        // As TLS does when the peer has answered, and the system when the peer is gone.
        try #require(handler.context).close(promise: nil)
        #expect(!channel.isActive)
        channel.embeddedEventLoop.run()
        #expect(shutdown == nil)
    }

    @Test func `a channel that is closed stays closed`() throws {
        let context = try #require(handler.context)
        try channel.close().wait()
        TLSShutdown.beginWithTLS(context, wheel: wheel)
        #expect(!channel.isActive)
    }

    @Test func `without TLS the channel is closed`() throws {
        TLSShutdown.begin(try #require(handler.context), wheel: wheel)
        #expect(!channel.isActive)
    }
}
