import HeraldMailbox
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

    private let services = FakeServices()

    private func courier() -> CourierState {
        CourierState(
            services: services.services,
            limits: CourierLimits(CourierConfiguration()),
            clock: FakeClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private func connection(to courier: CourierState, on channel: EmbeddedChannel) throws -> MQTTConnection {
        let id = try #require(DeviceID(SessionBench.name))
        return MQTTConnection(
            identity: DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max)),
            environment: .production,
            courier: courier,
            loop: CourierLoop(channel.eventLoop)
        )
    }

    @Test func `a device that is admitted when its connection is gone is detached again`() throws {
        let (courier, channel) = (courier(), EmbeddedChannel())
        try channel.pipeline.syncOperations.addHandler(try connection(to: courier, on: channel))
        try channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let link = try #require(courier.connections.links.first)
        try channel.close().wait()
        let record = DeviceRecord(session: nil)
        link.complete(.admitted(AdmittedDevice(device: SessionBench.device, fence: 7, record: record, apps: [])))
        channel.embeddedEventLoop.run()
        #expect(services.detached == [7])
    }

    @Test func `a closed connection leaves neither memory nor a deadline`() throws {
        let (courier, channel) = (courier(), EmbeddedChannel())
        var connection: MQTTConnection? = try connection(to: courier, on: channel)
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
