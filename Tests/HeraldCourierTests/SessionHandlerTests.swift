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

/// A connection with real bytes on one side and a fake office on the other.
final class HandlerBench {
    let office: FakeOffice
    let clock = FakeClock()
    let clerk: SessionClerk
    let channel = NIOAsyncTestingChannel()
    let loop: CourierLoop
    private var decoder: MQTTPacketDecoder
    let version: MQTTVersion

    init(
        _ version: MQTTVersion = .v5,
        office: FakeOffice = FakeOffice(),
        clerk: SessionClerk? = nil,
        configuration: CourierConfiguration = CourierConfiguration()
    ) async throws {
        self.version = version
        self.office = office
        let clerk =
            clerk
            ?? SessionClerk(
                office: office,
                limits: SessionLimits(configuration),
                clock: clock,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        self.clerk = clerk
        decoder = MQTTPacketDecoder(version: version, maximumPacketSize: 1 << 20)
        let id = try #require(DeviceID(SessionBench.name))
        let identity = DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max))
        let channel = channel
        loop = try await channel.testingEventLoop.executeInContext {
            let loop = CourierLoop(channel.eventLoop)
            let handler = SessionHandler(identity: identity, environment: .production, clerk: clerk, loop: loop)
            try channel.pipeline.syncOperations.addHandler(handler)
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
        office.link?.deliver(Sample.delivery(notification, qualityOfService: qualityOfService))
        await channel.testingEventLoop.run()
    }

    /// Runs `body` with the clerk's errands running beside it.
    static func run(_ clerk: SessionClerk, _ body: () async throws -> Void) async throws {
        let running = clerk
        async let errands: Void = running.run()
        do {
            try await body()
        } catch {
            clerk.finish()
            await errands
            throw error
        }
        clerk.finish()
        await errands
    }

    func connectAndSubscribe(_ properties: MQTTProperties = [], isClean: Bool = true) async throws {
        try await send(SessionBench.connect(version, isClean: isClean, properties: properties))
        #expect(try await next().connack?.reasonCode == .success)
        try await send(SessionBench.subscribe("apps/com.example.chat"))
        #expect(try await next().suback == [.grantedQoS1])
    }
}

/// Notes that the connection is about to be closed.
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

struct SessionHandlerTests {
    @Test func `a notification arrives as it was sent, with everything that MQTT 5 says of it`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            let payload = #"{"aps":{"alert":"Grüße"},"more":[1, 2]}"#
            await bench.deliver(
                Sample.notification(
                    5,
                    storedUntil: bench.clock.now() + .milliseconds(59_001),
                    priority: .conserving,
                    collapseID: "score",
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
            #expect(bench.office.finished.isEmpty)
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            #expect(
                bench.office.finished == [FakeOffice.Finished(app: AppNumber(1), delivery: 5, result: .acknowledged)]
            )
        }
    }

    @Test func `a notification that is not stored has no message expiry interval`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1, storedUntil: nil))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.properties.messageExpiryInterval == nil)
        }
    }

    @Test func `3-1-1 gets the payload alone`() async throws {
        let bench = try await HandlerBench(.v311)
        try await HandlerBench.run(bench.clerk) {
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

    @Test func `[MQTT-3.3.2-5] what expired while it waited is not sent`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
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
            #expect(bench.office.finished.map(\.result) == [.acknowledged, .expired])
        }
    }

    @Test func `[MQTT-3.1.2-24] [MQTT-3.1.2-25] what is larger than the device accepts counts as delivered`()
        async throws
    {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe([.maximumPacketSize(300)])
            await bench.deliver(Sample.notification(1, payload: String(repeating: "x", count: 300)))
            await bench.deliver(Sample.notification(2))
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.properties.userProperties(named: "apns-id") == ["00000000-0000-0000-0000-000000000002"])
            #expect(bench.office.finished.map(\.result) == [.tooLarge])
        }
    }

    @Test func `[MQTT-4.4.0-2] an acknowledgement with a refusal ends the delivery`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1))
            _ = try await bench.next()
            try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: 1, reasonCode: .quotaExceeded)))
            #expect(bench.office.finished.map(\.result) == [.refused])
        }
    }

    @Test func `at QoS 0 a notification is done once it is written`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            await bench.deliver(Sample.notification(1), qualityOfService: 0)
            guard case .publish(let publish) = try await bench.next() else {
                throw MQTTError(.protocolError, "no PUBLISH")
            }
            #expect(publish.qualityOfService == .atMostOnce && publish.packetIdentifier == nil)
            #expect(bench.office.finished.map(\.result) == [.written])
        }
    }

    @Test func `what is left in one turn of the loop is written at once`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            // On the loop itself, so that it cannot get to them before all are there.
            let link = bench.office.link
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

    @Test func `[MQTT-4.4.0-1] a resumed session gets what it did not acknowledge as a duplicate`() async throws {
        let office = FakeOffice()
        let first = try await HandlerBench(office: office)
        try await HandlerBench.run(first.clerk) {
            try await first.connectAndSubscribe([.sessionExpiryInterval(100)], isClean: false)
            await first.deliver(Sample.notification(1))
            _ = try await first.next()
            await first.deliver(Sample.notification(2))
            _ = try await first.next()
            try await first.send(.puback(MQTTPublishAnswer(packetIdentifier: 1)))
            try await first.channel.close()
            await first.channel.testingEventLoop.run()

            let second = try await HandlerBench(office: office, clerk: first.clerk)
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
        let office = FakeOffice()
        let first = try await HandlerBench(office: office)
        try await HandlerBench.run(first.clerk) {
            try await first.connectAndSubscribe()
            let second = try await HandlerBench(office: office, clerk: first.clerk)
            try await second.connectAndSubscribe()
            #expect(try await first.next().disconnect == .sessionTakenOver)
            await first.channel.testingEventLoop.run()
            #expect(!first.channel.isActive)
            #expect(second.channel.isActive)
        }
    }

    @Test func `[MQTT-3.1.2-22] a silent device is closed, one that speaks is not`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
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
            #expect(bench.office.detached == [1])
        }
    }

    @Test func `half a CONNECT is given up on`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.channel.writeInbound(ByteBuffer(bytes: [0x10, 0x20, 0, 4]))
            await bench.channel.testingEventLoop.advanceTime(by: .seconds(6))
            #expect(!bench.channel.isActive)
        }
    }

    @Test(arguments: [
        ByteBuffer(bytes: [0x00]), ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"),
        ByteBuffer(bytes: [0x10, 0xFF, 0xFF, 0xFF, 0x7F]), ByteBuffer(repeating: 0xFF, count: 9000),
    ])
    func `garbage is closed on`(bytes: ByteBuffer) async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.channel.writeInbound(bytes)
            await bench.channel.testingEventLoop.run()
            #expect(!bench.channel.isActive)
        }
    }

    @Test func `the token comes after the SUBACK, in lower-case hex`() async throws {
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
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
        let bench = try await HandlerBench()
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            for link in bench.clerk.table.links { link.dismiss(.revoked) }
            await bench.channel.testingEventLoop.run()
            #expect(try await bench.next().disconnect == .administrativeAction)
            await bench.channel.testingEventLoop.run()
            #expect(bench.clerk.table.links.isEmpty)
        }
    }

    @Test func `a device counts as away before it can see that its connection has ended`() async throws {
        let bench = try await HandlerBench()
        let office = bench.office
        try await HandlerBench.run(bench.clerk) {
            try await bench.connectAndSubscribe()
            #expect(office.detached.isEmpty)
            let atClose = Mutex<[Int]>([])
            try await bench.channel.pipeline.addHandler(
                CloseWitness { atClose.withLock { $0.append(office.detached.count) } },
                position: .first
            )
            try await bench.send(.disconnect(MQTTDisconnect(reasonCode: .success)))
            await bench.channel.testingEventLoop.run()
            #expect(atClose.withLock { $0 } == [1])
            #expect(office.detached.count == 1)
        }
    }

    @Test func `words on the wire are the model's`() {
        for type in PushType.allCases { #expect("\(type.text)" == type.rawValue) }
        for priority in Priority.allCases { #expect("\(priority.text)" == "\(priority.rawValue)") }
    }

    @Test func `[MQTT-4.4.0-1] also after a takeover`() async throws {
        let office = FakeOffice()
        let first = try await HandlerBench(office: office)
        try await HandlerBench.run(first.clerk) {
            try await first.connectAndSubscribe([.sessionExpiryInterval(100)], isClean: false)
            await first.deliver(Sample.notification(1))
            _ = try await first.next()
            let second = try await HandlerBench(office: office, clerk: first.clerk)
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
