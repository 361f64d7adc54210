import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

/// Connections on event loops of their own, so that a test decides which loop acts first.
struct ConnectionControlTests {
    private let sweeper = EmbeddedEventLoop()
    private let control: ConnectionControl

    init() {
        var configuration = ListenerConfiguration(name: "test", host: "127.0.0.1", port: 0)
        configuration.maximumConnections = 2
        control = ConnectionControl(
            configuration,
            refusals: RefusalLog(listener: "test", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
                _ in nil
            }
        )
        control.startSweep(on: sweeper)
    }

    private func accept() throws -> (channel: EmbeddedChannel, connection: AdmittedConnection, notices: Notices) {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
        let notices = Notices()
        try channel.pipeline.syncOperations.addHandler(notices)
        return (channel, try #require(try control.admit(channel)), notices)
    }

    /// Counts the events of an overdue connection.
    private final class Notices: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private(set) var count = 0

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is ConnectionOverdue { count += 1 }
        }
    }

    @Test func `an overdue connection is told, and closed after the notice; until then it has its place`() throws {
        let (channel, _, notices) = try accept()
        sweeper.advanceTime(by: .seconds(31))
        channel.embeddedEventLoop.run()
        #expect(notices.count == 1 && channel.isActive && control.connectionCount == 1)
        channel.embeddedEventLoop.advanceTime(by: ConnectionOverdue.notice)
        #expect(!channel.isActive && control.connectionCount == 0)
    }

    @Test func `a connection that becomes known before its loop hears that it is overdue stays`() throws {
        let (channel, connection, notices) = try accept()
        sweeper.advanceTime(by: .seconds(31))
        connection.becameKnown()
        channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(notices.count == 0 && channel.isActive && control.connectionCount == 1)
    }

    @Test func `a connection that becomes known within the notice stays`() throws {
        let (channel, connection, notices) = try accept()
        sweeper.advanceTime(by: .seconds(31))
        channel.embeddedEventLoop.run()
        connection.becameKnown()
        channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(notices.count == 1 && channel.isActive && control.connectionCount == 1)
    }

    @Test func `a connection that becomes known before its loop closes it for another stays`() throws {
        let (first, second) = (try accept(), try accept())
        let third = try accept()
        first.connection.becameKnown()
        for one in [first, second, third] { one.channel.embeddedEventLoop.run() }
        #expect(first.channel.isActive && second.channel.isActive && third.channel.isActive)
        _ = try accept()
        second.channel.embeddedEventLoop.run()
        #expect(!second.channel.isActive && first.channel.isActive)
    }
}
