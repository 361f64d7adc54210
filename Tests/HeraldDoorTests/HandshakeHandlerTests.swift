import Logging
import NIOCore
import NIOEmbedded
import NIOSSL
import Synchronization
import Testing

@testable import HeraldDoor

private final class Lines: Sendable {
    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            lines.reasons.withLock { $0.append("\(event.metadata?["reason"] ?? "none")") }
        }
    }

    let reasons = Mutex<[String]>([])
    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }
}

/// In the place of TLS: calls the end of a connection in mid-handshake an error, as it does.
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
    private let lines = Lines()
    private var told: [String] { lines.reasons.withLock { $0 } }

    init() throws {
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        handler = HandshakeHandler(
            tls: NIOSSLServerHandler(context: context),
            nameReader: ServerNameReader(),
            patience: .seconds(10),
            refusals: RefusalDesk(door: "test", logger: lines.logger) { _ in nil },
            logger: lines.logger
        ) { _, _ in }
        try channel.pipeline.syncOperations.addHandlers([TLS(), handler])
    }

    private func connect() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    @Test func `silence is told once, and not again by the end that it has`() throws {
        try connect()
        channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(channel.isActive && told.isEmpty)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
        #expect(told == ["no TLS handshake within the time for it"])
    }

    @Test func `a failure is told once, and not as silence later`() throws {
        try connect()
        channel.pipeline.fireErrorCaught(NIOSSLError.uncleanShutdown)
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(told.count == 1)
        #expect(told != ["no TLS handshake within the time for it"])
    }

    /// As it is when the channel closes before it was ever active, which nothing else tells.
    @Test func `removed from its channel it leaves no deadline behind`() throws {
        try channel.pipeline.syncOperations.removeHandler(handler).wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(20))
        #expect(told == [])
    }
}
