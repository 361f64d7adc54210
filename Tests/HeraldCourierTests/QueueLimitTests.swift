import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWire
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldCourier

/// A device that does not acknowledge: what waits for it has a limit.
struct QueueLimitTests {
    private static let app = App(topic: SessionBench.topic("com.example.chat"), environment: .production)

    /// A service for which a session may have one subscription, so that four messages may wait.
    private static func bench(
        _ version: MQTTVersion = .v5,
        services: FakeServices = FakeServices()
    ) async throws -> ConnectionBench {
        var configuration = CourierConfiguration()
        configuration.subscriptionsPerSession = 1
        configuration.windowWithoutReceiveMaximum = 1
        return try await ConnectionBench(version, services: services, configuration: configuration)
    }

    private func connect(_ bench: ConnectionBench) async throws {
        let properties: MQTTProperties = bench.version == .v5 ? [.receiveMaximum(1)] : []
        try await bench.send(SessionBench.connect(bench.version, properties: properties))
        #expect(try await bench.next().connack?.reasonCode == .success)
    }

    @Test(arguments: [MQTTVersion.v5, .v311])
    func `one subscription again and again leaves one token in flight and none behind it`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Self.bench(version)
        try await ConnectionBench.run(bench.courier) {
            try await connect(bench)
            for round in 1...20 {
                try await bench.send(SessionBench.subscribe("apps/com.example.chat/token"))
                #expect(try await bench.next().suback == [.grantedQoS1])
                guard round == 1 else { continue }
                guard case .publish = try await bench.next() else { throw MQTTError(.protocolError, "no token") }
            }
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)), .pingreq)
            #expect(try await bench.next() == .pingresp)
        }
    }

    @Test func `a channel that is unsubscribed from leaves nothing in the queue`() async throws {
        let scene = ChannelScene(clock: ManualClock(FakeClock().now()))
        try await scene.load([(1, Self.app, .newest)])
        let filter = "channels/com.example.chat/\(ChannelScene.id(1).topicLevel)"
        _ = scene.service.publish(
            scene.post(1, to: 1, of: Self.app, for: .seconds(600)),
            completion: scene.completions.completion()
        )
        let bench = try await Self.bench(services: FakeServices(channels: scene.service))
        try await ConnectionBench.run(bench.courier) {
            try await connect(bench)
            for round in 1...20 {
                try await bench.send(SessionBench.subscribe(filter))
                #expect(try await bench.next().suback == [.grantedQoS1])
                if round == 1 {
                    guard case .publish = try await bench.next() else { throw MQTTError(.protocolError, "no message") }
                }
                try await bench.send(SessionBench.unsubscribe(filter))
                #expect(try await bench.next().unsuback == [.success])
            }
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)), .pingreq)
            #expect(try await bench.next() == .pingresp)
        }
    }

    @Test(arguments: [MQTTVersion.v5, .v311])
    func `a device for which more waits than may wait is disconnected with 0x97`(version: MQTTVersion) async throws {
        let bench = try await Self.bench(version)
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe(version == .v5 ? [.receiveMaximum(1)] : [])
            for number in 1...5 { await bench.deliver(Sample.notification(UInt64(number))) }
            guard case .publish = try await bench.next() else { throw MQTTError(.protocolError, "no PUBLISH") }
            try await bench.send(.pingreq)
            #expect(try await bench.next() == .pingresp)
            await bench.deliver(Sample.notification(6))
            if version == .v5 { #expect(try await bench.next().disconnect == .quotaExceeded) }
            try await bench.channel.closeFuture.get()
        }
    }
}
