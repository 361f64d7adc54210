import HeraldMailbox
import HeraldModel
import HeraldWire
import Testing

@testable import HeraldCourier

/// The decisions of a session about channels.
struct SessionChannelTests {
    private static let known = "channels/com.example.chat/AAECAwQFBgcICQoLDA0O-w=="
    private static let unknown = "channels/com.example.chat/AAECAwQFBgcICQoLDA0O_w=="

    @Test func `an existing channel is granted, an unknown one is refused with 0x87 and a reason`() throws {
        var bench = try SessionBench.connected()
        bench.channels = [Self.known]
        bench.receive(SessionBench.subscribe(Self.known, Self.unknown, "channels/com.example.chat/x"))
        guard case .suback(let suback) = bench.sent.last else { throw MQTTError(.protocolError, "no SUBACK") }
        #expect(suback.reasonCodes == [.grantedQoS1, .notAuthorized, .notAuthorized])
        #expect(suback.properties == [.reasonString("the app has no such channel in production")])
        #expect(bench.openChannels == [Self.known: 1])
        #expect(bench.log == ["suback", "channel after 0"])
        #expect(bench.registered.isEmpty)
    }

    @Test func `a device that wants no reason strings gets none, and 3-1-1 has none`() throws {
        for version in [MQTTVersion.v5, .v311] {
            let properties: MQTTProperties = version == .v5 ? [.requestProblemInformation(0)] : []
            var bench = try SessionBench.connected(version, properties: properties)
            bench.receive(SessionBench.subscribe(Self.unknown))
            guard case .suback(let suback) = bench.sent.last else { throw MQTTError(.protocolError, "no SUBACK") }
            #expect(suback.reasonCodes == [.notAuthorized] && suback.properties == [])
        }
    }

    @Test func `channels and apps in one packet, and a channel twice`() throws {
        var bench = try SessionBench.connected()
        bench.channels = [Self.known]
        bench.receive(SessionBench.subscribe(Self.known, "apps/com.example.chat", Self.known))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1, .grantedQoS1])
        #expect(bench.log == ["suback", "open", "channel after 0"])
    }

    @Test func `a granted quality of service is at most 1, and another replaces it`() throws {
        var bench = try SessionBench.connected()
        bench.channels = [Self.known]
        bench.receive(SessionBench.subscribe(Self.known, qualityOfService: .exactlyOnce))
        #expect(bench.openChannels == [Self.known: 1])
        bench.receive(SessionBench.subscribe(Self.known, qualityOfService: .atMostOnce))
        #expect(bench.sent.last?.suback == [.grantedQoS0])
        #expect(bench.openChannels == [Self.known: 0])
    }

    @Test func `a channel is closed before UNSUBACK, and registers and removes no app`() throws {
        var bench = try SessionBench.connected()
        bench.channels = [Self.known]
        bench.receive(SessionBench.subscribe(Self.known))
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe(Self.known, Self.unknown))
        #expect(bench.sent.last?.unsuback == [.success, .noSubscriptionExisted])
        #expect(bench.log == ["no channel", "unsuback"])
        #expect(bench.requests.isEmpty)
    }

    @Test func `a resumed session opens its channels after the last acknowledged broadcast`() throws {
        var bench = try SessionBench()
        bench.record.session = SessionRecord(
            subscriptions: [Self.known: 1],
            expiryInterval: 100,
            disconnected: bench.now
        )
        bench.record.session?.broadcasts = [Self.known: 17]
        bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
        #expect(bench.sent.first?.connack?.isSessionPresent == true)
        #expect(bench.log == ["attach", "connack", "channel after 17"])
    }

    @Test func `a clean start knows nothing of channels`() throws {
        var bench = try SessionBench()
        bench.record.session = SessionRecord(subscriptions: [Self.known: 1], expiryInterval: 100)
        bench.record.session?.broadcasts = [Self.known: 17]
        bench.receive(SessionBench.connect(properties: [.sessionExpiryInterval(100)]))
        #expect(bench.openChannels.isEmpty && bench.terms?.broadcasts == [:])
    }

    @Test func `a registry that fails grants no channel`() throws {
        var bench = try SessionBench.connected()
        bench.channels = [Self.known]
        bench.isRegistryDown = true
        bench.receive(SessionBench.subscribe(Self.known))
        #expect(bench.sent.last?.suback == [.notAuthorized])
    }
}
