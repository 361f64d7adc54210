import HeraldMailbox
import HeraldModel
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldCourier

/// Connections that end while a message is unacknowledged, one after the other.
struct ConnectionEndTests {
    /// A connection that has subscribed; the services know which deliveries it finishes.
    private func connect(_ first: ConnectionBench, _ version: MQTTVersion) async throws -> ConnectionBench {
        let bench = try await ConnectionBench(version, services: first.services, courier: first.courier)
        try await bench.connectAndSubscribe()
        return bench
    }

    private func isSuspected(_ bench: ConnectionBench) -> Bool {
        bench.courier.repeatedEnds.withLock { $0.isSuspected(SessionBench.device) }
    }

    private func results(_ bench: ConnectionBench) -> [DeliveryResult] { bench.services.finished.map(\.result) }

    /// Ends connections in a way, each with notification 1 unacknowledged.
    private func end(
        _ count: Int,
        _ first: ConnectionBench,
        with packet: MQTTPacket? = nil,
        after time: Duration = .zero
    ) async throws {
        for _ in 0..<count {
            let bench = try await connect(first, first.version)
            await bench.deliver(Sample.notification(1))
            _ = try await bench.next()
            bench.clock.advance(by: time)
            first.clock.advance(by: time)
            if let packet { try await bench.send(packet) } else { try await bench.channel.close() }
        }
    }

    @Test(arguments: [MQTTVersion.v5, .v311])
    func `the notification at which the peer closes five connections is refused`(version: MQTTVersion) async throws {
        let first = try await ConnectionBench(version)
        try await ConnectionBench.run(first.courier) {
            try await end(4, first)
            #expect(results(first).isEmpty)
            try await end(1, first)
            #expect(results(first) == [.endsConnection])
        }
    }

    @Test func `a DISCONNECT that calls the packet malformed counts more`() async throws {
        let first = try await ConnectionBench()
        try await ConnectionBench.run(first.courier) {
            try await end(2, first, with: .disconnect(MQTTDisconnect(reasonCode: .malformedPacket)))
            #expect(results(first) == [.endsConnection])
        }
    }

    @Test func `an ordinary DISCONNECT and a late end count nothing`() async throws {
        let first = try await ConnectionBench()
        try await ConnectionBench.run(first.courier) {
            try await end(9, first, with: .disconnect(MQTTDisconnect(reasonCode: .success)))
            try await end(9, first, after: .seconds(3))
            #expect(results(first).isEmpty)
        }
    }

    @Test func `what the service ends counts nothing`() async throws {
        let first = try await ConnectionBench()
        try await ConnectionBench.run(first.courier) {
            for _ in 0..<9 {
                let bench = try await connect(first, .v5)
                await bench.deliver(Sample.notification(1))
                _ = try await bench.next()
                bench.services.link?.dismiss(.disconnected)
                await bench.channel.testingEventLoop.run()
            }
            #expect(results(first).isEmpty && !isSuspected(first))
        }
    }

    @Test func `after an end with several messages the device gets one at a time until it has acknowledged them`()
        async throws
    {
        let first = try await ConnectionBench()
        try await ConnectionBench.run(first.courier) {
            var bench = try await connect(first, .v5)
            for number in 1...3 { await bench.deliver(Sample.notification(UInt64(number))) }
            for _ in 1...3 { _ = try await bench.next() }
            try await bench.channel.close()
            bench = try await connect(first, .v5)
            for number in 1...3 { await bench.deliver(Sample.notification(UInt64(number))) }
            for _ in 1...3 {
                let identifier = try #require(try await bench.next().publishIdentifier)
                try await bench.send(.pingreq)
                #expect(try await bench.next() == .pingresp)
                try await bench.send(.puback(MQTTPublishAnswer(packetIdentifier: identifier)))
            }
            for number in 4...5 { await bench.deliver(Sample.notification(UInt64(number))) }
            #expect(try await bench.next().publishIdentifier != nil)
            #expect(try await bench.next().publishIdentifier != nil)
            try await bench.send(.disconnect(MQTTDisconnect(reasonCode: .success)))
            #expect(!isSuspected(first))
        }
    }

    @Test func `a refused notification leaves no packet identifier for a duplicate`() async throws {
        let first = try await ConnectionBench()
        try await ConnectionBench.run(first.courier) {
            for _ in 1...5 {
                let bench = try await ConnectionBench(.v5, services: first.services, courier: first.courier)
                try await bench.connectAndSubscribe([.sessionExpiryInterval(3600)], isClean: false)
                await bench.deliver(Sample.notification(1))
                _ = try await bench.next()
                try await bench.channel.close()
            }
            #expect(first.courier.takeovers.takeUnacknowledged(of: SessionBench.device).isEmpty)
        }
    }
}

extension MQTTPacket {
    fileprivate var publishIdentifier: UInt16? {
        if case .publish(let publish) = self { publish.packetIdentifier } else { nil }
    }
}
