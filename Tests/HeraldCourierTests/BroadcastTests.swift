import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldCourier

/// Broadcasts, from the channel office to the bytes on one connection.
struct BroadcastTests {
    /// The courier's way to one loop.
    private final class Outlet: BroadcastOutlet {
        private let loop: CourierLoop
        private let clock: FakeClock

        init(_ bench: HandlerBench) {
            loop = bench.loop
            clock = bench.clock
        }

        func send(_ order: BroadcastOrder) {
            var properties = MQTTPropertyBlock()
            let packets = BroadcastPackets(
                order.broadcast,
                topic: order.feed.topic,
                now: clock.now(),
                &properties
            )
            loop.broadcasts.leave(LoopBroadcast(order: order, packets: packets))
        }
    }

    private static let app = App(topic: SessionBench.topic("com.example.chat"), environment: .production)
    private static let filter = "channels/com.example.chat/\(ChannelScene.id(1).topicLevel)"

    private let scene = ChannelScene(clock: ManualClock(FakeClock().now()))
    private let bench: HandlerBench
    private let outlet: Outlet

    init() async throws {
        try await scene.load([(1, Self.app, .newest), (2, Self.app, .none)])
        bench = try await HandlerBench(office: FakeOffice(channels: scene.office))
        outlet = Outlet(bench)
        scene.office.deliver(through: outlet)
    }

    /// Moves both clocks.
    private func pass(_ time: Duration) {
        scene.clock.advance(by: time)
        bench.clock.advance(by: time)
    }

    private func publish(
        _ number: UInt64,
        for duration: Duration? = .seconds(600),
        priority: Priority = .immediate
    ) async {
        let post = scene.post(number, to: 1, of: Self.app, for: duration, priority: priority)
        _ = scene.office.publish(post, receipt: scene.receipts.receipt())
        await bench.channel.testingEventLoop.run()
    }

    private func connect(_ properties: MQTTProperties = [], in bench: HandlerBench) async throws {
        try await bench.send(SessionBench.connect(bench.version, properties: properties))
        #expect(try await bench.next().connack?.reasonCode == .success)
    }

    private func subscribe(
        in bench: HandlerBench,
        qualityOfService: MQTTQualityOfService = .atLeastOnce
    ) async throws {
        try await bench.send(SessionBench.subscribe(Self.filter, qualityOfService: qualityOfService))
        let code: MQTTReasonCode = qualityOfService == .atMostOnce ? .grantedQoS0 : .grantedQoS1
        #expect(try await bench.next().suback == [code])
    }

    /// The number of the next broadcast.
    private func next(in bench: HandlerBench) async throws -> UInt64 {
        guard case .publish(let publish) = try await bench.next() else { throw MQTTError(.protocolError, "no PUBLISH") }
        #expect(publish.topic == Self.filter)
        let digits = String(decoding: publish.payload, as: UTF8.self).filter(\.isNumber)
        return UInt64(digits) ?? 0
    }

    /// What comes next is the answer to a PINGREQ: nothing was sent before.
    private func expectNothing(in bench: HandlerBench) async throws {
        try await bench.send(.pingreq)
        #expect(try await bench.next() == .pingresp)
    }

    @Test func `MQTT 5 says everything of a broadcast that it says of a notification`() async throws {
        try await HandlerBench.run(bench.clerk) {
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
        let bench = try await HandlerBench(.v311, office: bench.office)
        let outlet = Outlet(bench)
        scene.office.deliver(through: outlet)
        try await HandlerBench.run(bench.clerk) {
            try await connect(in: bench)
            try await subscribe(in: bench, qualityOfService: qualityOfService)
            let post = scene.post(1, to: 1, of: Self.app)
            _ = scene.office.publish(post, receipt: scene.receipts.receipt())
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

    @Test func `past the window the newest waits, alone, and goes out with what is left of its time`() async throws {
        try await HandlerBench.run(bench.clerk) {
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
            #expect(scene.office.feed(ChannelScene.id(1), of: Self.app)?.delivered == 2)
        }
    }

    @Test func `what expired while it waited is not sent`() async throws {
        try await HandlerBench.run(bench.clerk) {
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

    @Test func `a later subscriber gets the newest that is stored, after SUBACK, and once`() async throws {
        await publish(1)
        await publish(2)
        await publish(3, for: nil)
        try await HandlerBench.run(bench.clerk) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            #expect(try await next(in: bench) == 2)
            try await subscribe(in: bench)
            try await expectNothing(in: bench)
            await publish(4)
            #expect(try await next(in: bench) == 4)
        }
    }

    @Test func `a broadcast that was told of before its order came is not sent twice`() async throws {
        try await HandlerBench.run(bench.clerk) {
            try await connect(in: bench)
            // Accepted; its order lies in the loop's inbox until the loop turns.
            let post = scene.post(1, to: 1, of: Self.app, for: .seconds(60))
            _ = scene.office.publish(post, receipt: scene.receipts.receipt())
            try await subscribe(in: bench)
            #expect(try await next(in: bench) == 1)
            await bench.channel.testingEventLoop.run()
            try await expectNothing(in: bench)
        }
    }

    @Test func `priorities 5 and 1 wait until the device saves no more; of each channel the newest`() async throws {
        try await HandlerBench.run(bench.clerk) {
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

    @Test func `after UNSUBACK nothing comes, and the subscription is not counted`() async throws {
        try await HandlerBench.run(bench.clerk) {
            try await connect(in: bench)
            try await subscribe(in: bench)
            let feed = try #require(scene.office.feed(ChannelScene.id(1), of: Self.app))
            #expect(feed.subscribers == 1)
            try await bench.send(SessionBench.unsubscribe(Self.filter))
            #expect(try await bench.next().unsuback == [.success])
            await publish(1)
            try await expectNothing(in: bench)
            #expect(feed.subscribers == 0 && feed.published == 1)
        }
    }

    @Test func `what is larger than the device accepts is not sent`() async throws {
        try await HandlerBench.run(bench.clerk) {
            try await connect([.maximumPacketSize(120)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            try await expectNothing(in: bench)
        }
    }

    @Test func `what is on its way when the channel is deleted arrives, and then it is silent`() async throws {
        try await HandlerBench.run(bench.clerk) {
            try await connect([.receiveMaximum(1)], in: bench)
            try await subscribe(in: bench)
            await publish(1)
            await publish(2)
            _ = scene.office.delete(ChannelScene.id(1), of: Self.app, receipt: scene.receipts.receipt())
            #expect(try await next(in: bench) == 1)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            #expect(try await next(in: bench) == 2)
            await publish(3)
            try await expectNothing(in: bench)
        }
    }

    @Test func `a session that goes on gets what it missed, and not what it had`() async throws {
        let session: MQTTProperties = [.sessionExpiryInterval(100)]
        try await HandlerBench.run(bench.clerk) {
            try await connect(session, in: bench)
            try await subscribe(in: bench)
            await publish(1)
            #expect(try await next(in: bench) == 1)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await bench.send(.disconnect(MQTTDisconnect()))
            try await bench.channel.closeFuture.get()
            for missed: UInt64? in [nil, 2] {
                if let missed { await publish(missed) }
                let again = try await HandlerBench(office: bench.office, clerk: bench.clerk)
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

    @Test func `a session that had a broadcast while the clock was ahead gets those of now`() async throws {
        let session: MQTTProperties = [.sessionExpiryInterval(100_000)]
        pass(.seconds(3600))
        try await HandlerBench.run(bench.clerk) {
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
        let office = FakeOffice(channels: try await scene.restarted())
        let kept = bench.office.state.withLock { $0.sessions }
        office.state.withLock { $0.sessions = kept }
        let again = try await HandlerBench(office: office)
        let outlet = Outlet(again)
        office.channels.deliver(through: outlet)
        try await HandlerBench.run(again.clerk) {
            try await again.send(SessionBench.connect(isClean: false, properties: session))
            #expect(try await again.next().connack?.isSessionPresent == true)
            _ = office.channels.publish(
                scene.post(2, to: 1, of: Self.app, for: nil),
                receipt: scene.receipts.receipt()
            )
            await again.channel.testingEventLoop.run()
            #expect(try await next(in: again) == 2)
        }
        withExtendedLifetime(outlet) {}
    }
}
