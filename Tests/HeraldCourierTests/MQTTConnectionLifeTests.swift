import HeraldModel
import HeraldTrust
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldCourier

/// The memory of a connection that is over.
struct MQTTConnectionLifeTests {
    @Test func `an open connection is noted again, in one of several parts`() async throws {
        let bench = try await ConnectionBench()
        #expect(bench.courier.sightings.take().count == 1)
        for part in 0..<8 { bench.courier.noteConnected(part: part, of: 8) }
        #expect(bench.courier.sightings.take().map(\.at) == [bench.clock.now()])
    }

    @Test func `a closed connection leaves neither memory nor a deadline`() throws {
        let courier = CourierState(
            services: FakeServices().services,
            limits: CourierLimits(CourierConfiguration()),
            clock: FakeClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let channel = EmbeddedChannel()
        let loop = CourierLoop(channel.eventLoop)
        let id = try #require(DeviceID(SessionBench.name))
        let identity = DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max))
        var connection: MQTTConnection? = MQTTConnection(
            identity: identity,
            environment: .production,
            courier: courier,
            loop: loop
        )
        weak let watched = connection
        try channel.pipeline.syncOperations.addHandler(try #require(connection))
        connection = nil
        try channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(watched != nil)
        #expect(courier.connections.links.count == 1)
        try channel.close().wait()
        channel.embeddedEventLoop.run()
        #expect(courier.connections.links.isEmpty)
        #expect(watched == nil)
    }
}
