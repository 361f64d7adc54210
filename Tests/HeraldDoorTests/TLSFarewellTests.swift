import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldDoor

/// In the place of TLS: passes the ends on as it does, and remembers them.
private final class TLS: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var ends: [CloseMode] = []

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        ends.append(mode)
        context.close(mode: mode, promise: promise)
    }
}

private final class Speaker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private(set) var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }
}

@Suite struct TLSFarewellTests {
    private let channel = EmbeddedChannel()
    private let tls = TLS()
    private let speaker = Speaker()
    private let wheel: DeadlineWheel

    init() throws {
        wheel = DeadlineWheel(eventLoop: channel.embeddedEventLoop, tick: .milliseconds(100))
        try channel.pipeline.syncOperations.addHandlers([tls, speaker])
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    private func say() throws {
        TLSFarewell.begin(try #require(speaker.context), wheel: wheel)
    }

    @Test func `TLS says it, and the socket stays open until the wait is over`() throws {
        try say()
        #expect(tls.ends == [.output])
        channel.embeddedEventLoop.advanceTime(by: TLSFarewell.longestWait - .milliseconds(1))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(101))
        #expect(!channel.isActive)
        // The wait ends beneath TLS, which would begin another.
        #expect(tls.ends == [.output])
    }

    @Test func `a peer that ends the connection is waited for no longer, and nothing of it is kept`() throws {
        weak var farewell: TLSFarewell?
        try say()
        farewell = try channel.pipeline.syncOperations.handler(type: TLSFarewell.self)
        #expect(farewell != nil)
        // As TLS does when the peer has answered, and the system when the peer is gone.
        try #require(speaker.context).close(promise: nil)
        #expect(!channel.isActive)
        channel.embeddedEventLoop.run()
        #expect(farewell == nil)
    }

    @Test func `a channel that is closed stays closed`() throws {
        let context = try #require(speaker.context)
        try channel.close().wait()
        TLSFarewell.begin(context, wheel: wheel)
        #expect(!channel.isActive)
    }

    @Test func `without TLS the channel is closed`() throws {
        TLSFarewell.say(try #require(speaker.context), wheel: wheel)
        #expect(!channel.isActive)
    }
}
