import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldCourier

/// A connection with real bytes on one side and fake services on the other.
final class ConnectionBench {
    let services: FakeServices
    let clock = FakeClock()
    let courier: CourierState
    let channel = NIOAsyncTestingChannel()
    let loop: CourierLoop
    private var decoder: MQTTPacketDecoder
    let version: MQTTVersion

    init(
        _ version: MQTTVersion = .v5,
        services: FakeServices = FakeServices(),
        courier: CourierState? = nil,
        configuration: CourierConfiguration = CourierConfiguration()
    ) async throws {
        self.version = version
        self.services = services
        let courier =
            courier
            ?? CourierState(
                services: services.services,
                limits: CourierLimits(configuration),
                clock: clock,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        self.courier = courier
        decoder = MQTTPacketDecoder(version: version, maximumPacketSize: 1 << 20)
        let id = try #require(DeviceID(SessionBench.name))
        let identity = DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max))
        let channel = channel
        loop = try await channel.testingEventLoop.executeInContext {
            let loop = CourierLoop(channel.eventLoop)
            let connection = MQTTConnection(
                identity: identity,
                environment: .production,
                courier: courier,
                loop: loop
            )
            try channel.pipeline.syncOperations.addHandler(connection)
            return loop
        }
        try await channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    }

    func send(_ packets: MQTTPacket...) async throws {
        var bytes = ByteBuffer()
        for packet in packets { try MQTTPacketEncoder.encode(packet, version: version, into: &bytes) }
        try await channel.writeInbound(bytes)
    }

    /// The next packet that the service sends.
    func next() async throws -> MQTTPacket {
        while true {
            if let packet = try decoder.next() { return packet }
            decoder.append(try await channel.waitForOutboundWrite(as: ByteBuffer.self))
        }
    }

    func deliver(_ notification: Notification, qualityOfService: UInt8 = 1) async {
        services.link?.deliver(Sample.delivery(notification, qualityOfService: qualityOfService))
        await channel.testingEventLoop.run()
    }

    /// Runs `body` with the registry requests running beside it.
    static func run(_ courier: CourierState, _ body: () async throws -> Void) async throws {
        let requests = courier.requests
        async let running: Void = requests.run()
        do {
            try await body()
        } catch {
            requests.finish()
            await running
            throw error
        }
        requests.finish()
        await running
    }

    func connectAndSubscribe(_ properties: MQTTProperties = [], isClean: Bool = true) async throws {
        try await send(SessionBench.connect(version, isClean: isClean, properties: properties))
        #expect(try await next().connack?.reasonCode == .success)
        try await send(SessionBench.subscribe("apps/com.example.chat"))
        #expect(try await next().suback == [.grantedQoS1])
    }
}

/// Reports that the connection is about to be closed.
private final class CloseWitness: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = ByteBuffer

    private let note: @Sendable () -> Void

    init(_ note: @escaping @Sendable () -> Void) {
        self.note = note
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        note()
        context.close(mode: mode, promise: promise)
    }
}

struct MQTTConnectionTests {
    @Test func `a notification arrives as it was sent, with the properties of MQTT 5`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            let payload = #"{"aps":{"alert":"Grüße"},"more":[1, 2]}"#
            await bench.deliver(
                Sample.notification(
                    5,
                    storedUntil: bench.clock.now() + .milliseconds(59_001),
                    priority: .conserving,
                    collapseID: CollapseID("score"),
                    payload: payload
                )
            )
            let expected = MQTTPublish(
                topic: "apps/com.example.chat",
                packetIdentifier: 1,
                qualityOfService: .atLeastOnce,
                properties: [
                    .messageExpiryInterval(60), .contentType("application/json"),
                    .userProperty(name: "apns-id", value: "00000000-0000-0000-0000-000000000005"),
                    .userProperty(name: "apns-push-type", value: "alert"),
                    .userProperty(name: "apns-priority", value: "5"),
                    .userProperty(name: "apns-collapse-id", value: "score"),
                ],
                payload: Array(payload.utf8)
            )
            #expect(try await bench.next() == .publish(expected))
            #expect(bench.services.finished.isEmpty)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            #expect(
                bench.services.finished == [
                    FakeServices.Finished(app: AppNumber(1), delivery: 5, result: .acknowledged)
                ]
            )
        }
    }

    @Test func `a notification that is not stored has no message expiry interval`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1, storedUntil: nil))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.properties.messageExpiryInterval == nil)
        }
    }

    @Test func `3-1-1 gets the payload alone`() async throws {
        let bench = try await ConnectionBench(.v311)
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1, payload: "{}"))
            let expected = MQTTPublish(
                topic: "apps/com.example.chat",
                packetIdentifier: 1,
                qualityOfService: .atLeastOnce,
                payload: Array("{}".utf8)
            )
            #expect(try await bench.next() == .publish(expected))
        }
    }

    @Test func `[MQTT-3.3.2-5] a notification that expired while it waited is not sent`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe([.receiveMaximum(1)])
            await bench.deliver(Sample.notification(1))
            await bench.deliver(Sample.notification(2, storedUntil: bench.clock.now() + .seconds(10)))
            await bench.deliver(Sample.notification(3))
            _ = try await bench.next()
            bench.clock.advance(by: .seconds(10))
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.properties.userProperties(named: "apns-id") == ["00000000-0000-0000-0000-000000000003"])
            #expect(bench.services.finished.map(\.result) == [.acknowledged, .expired])
        }
    }

    @Test func `a notification that expired by a jump of the clock goes back to the store with the connection`()
        async throws
    {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe([.receiveMaximum(1)])
            await bench.deliver(Sample.notification(1))
            await bench.deliver(Sample.notification(2, storedUntil: bench.clock.now() + .seconds(10)))
            _ = try await bench.next()
            bench.clock.jump(by: .seconds(86_400))
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            #expect(!bench.channel.isActive)
            #expect(bench.services.finished.map(\.result) == [.acknowledged])
        }
    }

    @Test func `[MQTT-3.1.2-24] [MQTT-3.1.2-25] a notification larger than the device accepts counts as delivered`()
        async throws
    {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe([.maximumPacketSize(300)])
            await bench.deliver(Sample.notification(1, payload: String(repeating: "x", count: 300)))
            await bench.deliver(Sample.notification(2))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.properties.userProperties(named: "apns-id") == ["00000000-0000-0000-0000-000000000002"])
            #expect(bench.services.finished.map(\.result) == [.tooLarge])
        }
    }

    @Test func `[MQTT-4.4.0-2] an acknowledgement with a refusal ends the delivery`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1))
            _ = try await bench.next()
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1, reasonCode: .quotaExceeded)))
            #expect(bench.services.finished.map(\.result) == [.refused])
        }
    }

    @Test func `at QoS 0 a notification is delivered once it is written`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1), qualityOfService: 0)
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.qualityOfService == .atMostOnce && publish.packetIdentifier == nil)
            #expect(bench.services.finished.map(\.result) == [.written])
        }
    }

    @Test func `deliveries of one turn of the loop are written together`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            // On the loop itself, so that it cannot get to them before all are there.
            let link = bench.services.link
            try await bench.channel.testingEventLoop.executeInContext {
                for number in 1...10 { link?.deliver(Sample.delivery(UInt64(number))) }
            }
            await bench.channel.testingEventLoop.run()
            let bytes = try await bench.channel.waitForOutboundWrite(as: ByteBuffer.self)
            var decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: 8192)
            decoder.append(bytes)
            var count = 0
            while (try decoder.next()) != nil { count += 1 }
            #expect(count == 10)
        }
    }

    @Test func `[MQTT-4.4.0-1] a resumed session gets unacknowledged notifications as duplicates`() async throws {
        let services = FakeServices()
        let first = try await ConnectionBench(services: services)
        try await ConnectionBench.run(first.courier) {
            try await first.connectAndSubscribe([.sessionExpiryInterval(100)], isClean: false)
            await first.deliver(Sample.notification(1))
            _ = try await first.next()
            await first.deliver(Sample.notification(2))
            _ = try await first.next()
            try await first.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await first.channel.close()
            await first.channel.testingEventLoop.run()

            let second = try await ConnectionBench(services: services, courier: first.courier)
            try await second.send(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
            #expect(try await second.next().connack?.isSessionPresent == true)
            await second.deliver(Sample.notification(2))
            guard case .publish(let publish) = try await second.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.isDuplicate && publish.packetIdentifier == 2)
        }
    }

    @Test func `the older connection is closed when a newer one takes over`() async throws {
        let services = FakeServices()
        let first = try await ConnectionBench(services: services)
        try await ConnectionBench.run(first.courier) {
            try await first.connectAndSubscribe()
            let second = try await ConnectionBench(services: services, courier: first.courier)
            try await second.connectAndSubscribe()
            #expect(try await first.next().disconnect == .sessionTakenOver)
            await first.channel.testingEventLoop.run()
            #expect(!first.channel.isActive)
            #expect(second.channel.isActive)
        }
    }

    @Test func `[MQTT-3.1.2-22] a device that sends nothing is disconnected, and one that sends PINGREQ is not`()
        async throws
    {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.send(SessionBench.connect(keepAlive: 10))
            _ = try await bench.next()
            for _ in 0..<4 {
                await bench.channel.testingEventLoop.advanceTime(by: .seconds(14))
                try await bench.send(.pingreq)
                #expect(try await bench.next() == .pingresp)
            }
            await bench.channel.testingEventLoop.advanceTime(by: .seconds(16))
            #expect(try await bench.next().disconnect == .keepAliveTimeout)
            await bench.channel.testingEventLoop.run()
            #expect(!bench.channel.isActive)
            #expect(bench.services.detached == [1])
        }
    }

    @Test func `an incomplete CONNECT is closed after its timeout`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.channel.writeInbound(ByteBuffer(bytes: [0x10, 0x20, 0, 4]))
            await bench.channel.testingEventLoop.advanceTime(by: .seconds(6))
            #expect(!bench.channel.isActive)
        }
    }

    @Test(arguments: [
        ByteBuffer(bytes: [0x00]), ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"),
        ByteBuffer(bytes: [0x10, 0xFF, 0xFF, 0xFF, 0x7F]), ByteBuffer(repeating: 0xFF, count: 9000),
    ])
    func `a connection that sends garbage is closed`(bytes: ByteBuffer) async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.channel.writeInbound(bytes)
            await bench.channel.testingEventLoop.run()
            #expect(!bench.channel.isActive)
        }
    }

    @Test func `the token comes after the SUBACK, in lower-case hex`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.send(SessionBench.connect())
            _ = try await bench.next()
            try await bench.send(SessionBench.subscribe("apps/com.example.chat/#"))
            #expect(try await bench.next().suback == [.grantedQoS1])
            let expected = MQTTPublish(
                topic: "apps/com.example.chat/token",
                packetIdentifier: 1,
                qualityOfService: .atLeastOnce,
                payload: Array(SessionBench.token(AppNumber(1)).hex.utf8)
            )
            #expect(try await bench.next() == .publish(expected))
        }
    }

    @Test func `revocation ends a connection that is open`() async throws {
        let bench = try await ConnectionBench()
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            for link in bench.courier.connections.links { link.dismiss(.revoked) }
            await bench.channel.testingEventLoop.run()
            #expect(try await bench.next().disconnect == .notAuthorized)
            await bench.channel.testingEventLoop.run()
            #expect(bench.courier.connections.links.isEmpty)
        }
    }

    @Test func `a device counts as away before it can see that its connection has ended`() async throws {
        let bench = try await ConnectionBench()
        let services = bench.services
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            #expect(services.detached.isEmpty)
            let atClose = Mutex<[Int]>([])
            try await bench.channel.pipeline.addHandler(
                CloseWitness { atClose.withLock { $0.append(services.detached.count) } },
                position: .first
            )
            try await bench.send(.disconnect(MQTTDisconnect(reasonCode: .success)))
            await bench.channel.testingEventLoop.run()
            #expect(atClose.withLock { $0 } == [1])
            #expect(services.detached.count == 1)
        }
    }

    @Test func `push types and priorities are spelled as in the model`() {
        for type in PushType.allCases { #expect("\(type.text)" == type.rawValue) }
        for priority in Priority.allCases { #expect("\(priority.text)" == "\(priority.rawValue)") }
    }

    @Test func `[MQTT-4.4.0-1] unacknowledged notifications are sent as duplicates after a takeover`() async throws {
        let services = FakeServices()
        let first = try await ConnectionBench(services: services)
        try await ConnectionBench.run(first.courier) {
            try await first.connectAndSubscribe([.sessionExpiryInterval(100)], isClean: false)
            await first.deliver(Sample.notification(1))
            _ = try await first.next()
            let second = try await ConnectionBench(services: services, courier: first.courier)
            try await second.send(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
            #expect(try await second.next().connack?.isSessionPresent == true)
            #expect(try await first.next().disconnect == .sessionTakenOver)
            await second.deliver(Sample.notification(1))
            guard case .publish(let publish) = try await second.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.isDuplicate && publish.packetIdentifier == 1)
        }
    }
}
