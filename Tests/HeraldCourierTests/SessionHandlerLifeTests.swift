import HeraldModel
import HeraldTrust
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldCourier

/// What is left of a connection when it is over.
struct SessionHandlerLifeTests {
    @Test func `nothing of a connection stays when it is gone, and no deadline waits for it`() throws {
        let clerk = SessionClerk(
            office: FakeOffice(),
            limits: SessionLimits(CourierConfiguration()),
            clock: FakeClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let channel = EmbeddedChannel()
        let loop = CourierLoop(channel.eventLoop)
        let id = try #require(DeviceID(SessionBench.name))
        let identity = DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max))
        var handler: SessionHandler? = SessionHandler(
            identity: identity,
            environment: .production,
            clerk: clerk,
            loop: loop
        )
        weak let watched = handler
        try channel.pipeline.syncOperations.addHandler(try #require(handler))
        handler = nil
        try channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(watched != nil)
        #expect(clerk.table.links.count == 1)
        try channel.close().wait()
        channel.embeddedEventLoop.run()
        #expect(clerk.table.links.isEmpty)
        #expect(watched == nil)
    }
}
