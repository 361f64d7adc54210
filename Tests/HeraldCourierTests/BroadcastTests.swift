import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldCourier

/// Broadcasts, from the channel service to the bytes on one connection.
struct BroadcastTests {
    /// The courier's outlet to one loop.
    private final class Outlet: BroadcastOutlet {
        private let loop: CourierLoop
        private let clock: FakeClock

        init(_ bench: ConnectionBench) {
            loop = bench.loop
            clock = bench.clock
        }

        func send(_ order: BroadcastSend) {
            var properties = MQTTPropertyBlock()
            let packets = BroadcastPackets(
                order.broadcast,
                topic: order.feed.topic,
                now: clock.now(),
                &properties
            )
            loop.broadcasts.add(LoopBroadcast(order: order, packets: packets))
        }
    }

    private static let app = App(topic: SessionBench.topic("com.example.chat"), environment: .production)
    private static let filter = "channels/com.example.chat/\(ChannelScene.id(1).topicLevel)"

    private let scene = ChannelScene(clock: ManualClock(FakeClock().now()))
    private let bench: ConnectionBench
    private let outlet: Outlet

    init() async throws {
        try await scene.load([(1, Self.app, .newest), (2, Self.app, .none)])
        bench = try await ConnectionBench(services: FakeServices(channels: scene.service))
        outlet = Outlet(bench)
        scene.service.deliver(through: outlet)
    }

    /// Moves both clocks.
    private func pass(_ time: Duration) {
        scene.clock.advance(by: time)
        bench.clock.advance(by: time)
    }

    /// Both clocks jump; the certain time stays.
    private func jump(by time: Duration) {
        scene.clock.setCertain(scene.clock.certainTime())
        scene.clock.advance(by: time)
        bench.clock.jump(by: time)
    }

    /// The time of both clocks is certain again.
    private func release() async {
        scene.clock.setCertain(nil)
        bench.clock.accept()
        (bench.services.link as? MQTTConnectionLink)?.releaseWithheld()
        await bench.channel.testingEventLoop.run()
    }

    private func publish(
        _ number: UInt64,
        for duration: Duration? = .seconds(600),
        priority: Priority = .immediate
    ) async {
        let post = scene.post(number, to: 1, of: Self.app, for: duration, priority: priority)
        _ = scene.service.publish(post, completion: scene.completions.completion())
        await bench.channel.testingEventLoop.run()
    }

    private func connect(_ properties: MQTTProperties = [], in bench: ConnectionBench) async throws {
        try await bench.send(SessionBench.connect(bench.version, properties: properties))
        #expect(try await bench.next().connack?.reasonCode == .success)
    }

    private func subscribe(
        in bench: ConnectionBench,
        qualityOfService: MQTTQualityOfService = .atLeastOnce
    ) async throws {
        try await bench.send(SessionBench.subscribe(Self.filter, qualityOfService: qualityOfService))
        let code: MQTTReasonCode = qualityOfService == .atMostOnce ? .grantedQoS0 : .grantedQoS1
        #expect(try await bench.next().suback == [code])
    }

    /// The number of the next broadcast.
    private func next(in bench: ConnectionBench) async throws -> UInt64 {
        guard case .publish(let publish) = try await bench.next() else { throw MQTTError(.protocolError, "no PUBLISH") }
        #expect(publish.topic == Self.filter)
        let digits = String(decoding: publish.payload, as: UTF8.self).filter(\.isNumber)
        return UInt64(digits) ?? 0
    }

    /// Expects the answer to a PINGREQ next: nothing was sent before.
    private func expectNothing(in bench: ConnectionBench) async throws {
        try await bench.send(.pingreq)
        #expect(try await bench.next() == .pingresp)
    }

    @Test func `in MQTT 5 a broadcast has the properties of a notification`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            await publish(1, for: .milliseconds(59_001), priority: .conserving)
            let expected = MQTTPublish(
                topic: Self.filter,
                packetIdentifier: 1,
                qualityOfService: .atLeastOnce,
                properties: [
                    .messageExpiryInterval(60), .contentType("application/json"),
                    .userProperty(name: "apns-request-id", value: "00000000-0000-000e-0000-000000000001"),
                    .userProperty(name: "apns-unique-id", value: "00000000-0000-000f-0000-000000000001"),
                    .userProperty(name: "apns-push-type", value: "liveactivity"),
                    .userProperty(name: "apns-priority", value: "5"),
                ],
                payload: Array("{\"aps\":{\"n\":1}}".utf8)
            )
            #expect(try await bench.next() == .publish(expected))
            await publish(2, for: nil)
            guard case .publish(let second) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(second.properties.messageExpiryInterval == nil && second.packetIdentifier == 2)
        }
    }

    @Test(arguments: [MQTTQualityOfService.atMostOnce, .atLeastOnce])
    func `3-1-1 gets the payload alone`(qualityOfService: MQTTQualityOfService) async throws {
        let bench = try await ConnectionBench(.v311, services: bench.services)
        let outlet = Outlet(bench)
        scene.service.deliver(through: outlet)
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench, qualityOfService: qualityOfService)
            let post = scene.post(1, to: 1, of: Self.app)
            _ = scene.service.publish(post, completion: scene.completions.completion())
            await bench.channel.testingEventLoop.run()
            let expected = MQTTPublish(
                topic: Self.filter,
                packetIdentifier: qualityOfService == .atMostOnce ? nil : 1,
                qualityOfService: qualityOfService,
                payload: Array("{\"aps\":{\"n\":1}}".utf8)
            )
            #expect(try await bench.next() == .publish(expected))
        }
        withExtendedLifetime(outlet) {}
    }

    @Test func `past the window only the newest broadcast waits, and is sent with its remaining time`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect([.receiveMaximum(1)], in: bench)
            try await subscribe(in: bench)
            for number: UInt64 in 1...4 { await publish(number) }
            #expect(try await next(in: bench) == 1)
            try await expectNothing(in: bench)
            pass(.seconds(100))
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.payload == Array("{\"aps\":{\"n\":4}}".utf8))
            #expect(publish.properties.messageExpiryInterval == 500)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await expectNothing(in: bench)
            #expect(scene.service.feed(ChannelScene.id(1), of: Self.app)?.delivered == 2)
        }
    }

    @Test func `a broadcast that expired while it waited is not sent`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect([.receiveMaximum(1)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            await publish(2, for: .seconds(10))
            #expect(try await next(in: bench) == 1)
            pass(.seconds(10))
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await expectNothing(in: bench)
        }
    }

    // MARK: - Jumps of the clock

    @Test(arguments: [true, false]) func `a broadcast that looks expired after a jump waits for the certain time`(
        returns: Bool
    ) async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect([.receiveMaximum(1)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            await publish(2, for: .seconds(60))
            #expect(try await next(in: bench) == 1)
            jump(by: .seconds(86_400))
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            await scene.service.sweep()
            try await expectNothing(in: bench)
            if returns { jump(by: .seconds(-86_400)) }
            await release()
            if returns {
                #expect(try await next(in: bench) == 2)
                try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            }
            try await expectNothing(in: bench)
            await publish(3)
            #expect(try await next(in: bench) == 3)
        }
    }

    @Test func `a newer broadcast takes the place of a withheld one`() async throws {
        try await ConnectionBench.run(bench.courier) {
            await publish(1, for: .seconds(60))
            jump(by: .seconds(86_400))
            try await connect(in: bench)
            try await subscribe(in: bench)
            try await expectNothing(in: bench)
            await publish(2)
            #expect(try await next(in: bench) == 2)
            jump(by: .seconds(-86_400))
            await release()
            try await expectNothing(in: bench)
        }
    }

    @Test func `a device that subscribes after a jump gets the stored broadcast when the clock returns`() async throws {
        await publish(1, for: .seconds(60))
        jump(by: .seconds(86_400))
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            try await expectNothing(in: bench)
            jump(by: .seconds(-86_400))
            await release()
            #expect(try await next(in: bench) == 1)
        }
    }

    @Test func `after a jump back broadcasts arrive once and in order`() async throws {
        try await ConnectionBench.run(bench.courier) {
            await publish(1, for: .seconds(60))
            jump(by: .seconds(-86_400))
            try await connect(in: bench)
            try await subscribe(in: bench)
            #expect(try await next(in: bench) == 1)
            await publish(2)
            #expect(try await next(in: bench) == 2)
            jump(by: .seconds(86_400))
            await release()
            try await expectNothing(in: bench)
            await publish(3)
            #expect(try await next(in: bench) == 3)
        }
    }

    // MARK: - Stored broadcasts

    @Test func `a later subscriber gets the newest stored broadcast once, after SUBACK`() async throws {
        await publish(1)
        await publish(2)
        await publish(3, for: nil)
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            #expect(try await next(in: bench) == 2)
            try await subscribe(in: bench)
            try await expectNothing(in: bench)
            await publish(4)
            #expect(try await next(in: bench) == 4)
        }
    }

    @Test func `a broadcast that a new subscriber already got is not sent twice`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            // Accepted; it is in the loop's inbox until the loop turns.
            let post = scene.post(1, to: 1, of: Self.app, for: .seconds(60))
            _ = scene.service.publish(post, completion: scene.completions.completion())
            try await subscribe(in: bench)
            #expect(try await next(in: bench) == 1)
            await bench.channel.testingEventLoop.run()
            try await expectNothing(in: bench)
        }
    }

    @Test func `priorities 5 and 1 wait until the device stops saving power, the newest of each channel`() async throws
    {
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            try await bench.send(SessionBench.publish("device/power", #"{"saving":true}"#))
            #expect(try await bench.next().puback == .success)
            await publish(1, priority: .conserving)
            await publish(2, priority: .low)
            try await expectNothing(in: bench)
            try await bench.send(SessionBench.publish("device/power", #"{"saving":false}"#))
            #expect(try await bench.next().puback == .success)
            #expect(try await next(in: bench) == 2)
            try await bench.send(SessionBench.publish("device/power", #"{"saving":true}"#))
            #expect(try await bench.next().puback == .success)
            await publish(3, priority: .immediate)
            #expect(try await next(in: bench) == 3)
        }
    }

    @Test func `after UNSUBACK no broadcast is sent, and the subscription is not counted`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            let feed = try #require(scene.service.feed(ChannelScene.id(1), of: Self.app))
            #expect(feed.subscribers == 1)
            try await bench.send(SessionBench.unsubscribe(Self.filter))
            #expect(try await bench.next().unsuback == [.success])
            await publish(1)
            try await expectNothing(in: bench)
            #expect(feed.subscribers == 0 && feed.published == 1)
        }
    }

    @Test func `a broadcast larger than the device accepts is not sent`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect([.maximumPacketSize(120)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            try await expectNothing(in: bench)
        }
    }

    @Test func `broadcasts under way arrive after their channel is deleted, and no later ones`() async throws {
        try await ConnectionBench.run(bench.courier) {
            try await connect([.receiveMaximum(1)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            await publish(2)
            _ = scene.service.delete(ChannelScene.id(1), of: Self.app, completion: scene.completions.completion())
            #expect(try await next(in: bench) == 1)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            #expect(try await next(in: bench) == 2)
            await publish(3)
            try await expectNothing(in: bench)
        }
    }

    @Test func `a resumed session gets the broadcast that it missed, and none that it had`() async throws {
        let session: MQTTProperties = [.sessionExpiryInterval(100)]
        try await ConnectionBench.run(bench.courier) {
            try await connect(session, in: bench)
            try await subscribe(in: bench)
            await publish(1)
            #expect(try await next(in: bench) == 1)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await bench.send(.disconnect(MQTTDisconnect()))
            try await bench.channel.closeFuture.get()
            for missed: UInt64? in [nil, 2] {
                if let missed { await publish(missed) }
                let again = try await ConnectionBench(services: bench.services, courier: bench.courier)
                try await again.send(SessionBench.connect(isClean: false, properties: session))
                #expect(try await again.next().connack?.isSessionPresent == true)
                if let missed {
                    #expect(try await next(in: again) == missed)
                    try await again.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
                }
                try await expectNothing(in: again)
                try await again.send(.disconnect(MQTTDisconnect()))
                try await again.channel.closeFuture.get()
            }
        }
    }

    @Test func `a session that had a broadcast while the clock was ahead gets later ones`() async throws {
        let session: MQTTProperties = [.sessionExpiryInterval(100_000)]
        pass(.seconds(3600))
        try await ConnectionBench.run(bench.courier) {
            try await connect(session, in: bench)
            try await subscribe(in: bench)
            await publish(1, for: nil)
            #expect(try await next(in: bench) == 1)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await bench.send(.disconnect(MQTTDisconnect()))
            try await bench.channel.closeFuture.get()
        }
        // The clock is set right, and the service starts again.
        scene.clock.advance(by: .seconds(-3600))
        let services = FakeServices(channels: try await scene.restarted())
        let kept = bench.services.state.withLock { $0.sessions }
        services.state.withLock { $0.sessions = kept }
        let again = try await ConnectionBench(services: services)
        let outlet = Outlet(again)
        services.channels.deliver(through: outlet)
        try await ConnectionBench.run(again.courier) {
            try await again.send(SessionBench.connect(isClean: false, properties: session))
            #expect(try await again.next().connack?.isSessionPresent == true)
            _ = services.channels.publish(
                scene.post(2, to: 1, of: Self.app, for: nil),
                completion: scene.completions.completion()
            )
            await again.channel.testingEventLoop.run()
            #expect(try await next(in: again) == 2)
        }
        withExtendedLifetime(outlet) {}
    }
}
