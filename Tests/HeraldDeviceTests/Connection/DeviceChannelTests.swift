import HeraldModel
import HeraldWire
import Testing

@testable import HeraldDevice

/// Subscriptions to channels on a connection.
@Suite struct DeviceChannelTests {
    private let channel: DeviceChannel
    private var session: RememberingSession

    init() throws {
        let topic = try #require(Topic("com.example.chat"))
        channel = try #require(DeviceChannel("+/8CAwQFBgcICQoLDA0ODw==", of: topic))
        session = RememberingSession(
            DeviceConfiguration(
                host: "localhost",
                port: 1,
                credential: try DeviceCredential(pem: try IdentityFile.pem.get())
            )
        )
        _ = session.received(.connack(MQTTConnack()))
    }

    private static let filter = "channels/com.example.chat/-_8CAwQFBgcICQoLDA0ODw=="

    private func subscribe(_ identifier: UInt16) -> DeviceSession.Effect {
        .send(.subscribe(to: Self.filter, identifier))
    }

    private func suback(_ identifier: UInt16, _ code: MQTTReasonCode, _ reason: String? = nil) -> MQTTPacket {
        let properties = MQTTProperties(reason.map { [.reasonString($0)] } ?? [])
        return .suback(
            MQTTSubscriptionAnswer(packetIdentifier: identifier, properties: properties, reasonCodes: [code])
        )
    }

    private func broadcast(_ packetIdentifier: UInt16) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: Self.filter,
                packetIdentifier: packetIdentifier,
                qualityOfService: .atLeastOnce,
                properties: [
                    .userProperty(name: "apns-request-id", value: "00000000-0000-0001-0000-000000000001"),
                    .userProperty(name: "apns-unique-id", value: "00000000-0000-0001-0000-000000000002"),
                    .userProperty(name: "apns-push-type", value: "liveactivity"),
                ],
                payload: Array("{}".utf8)
            )
        )
    }

    @Test func `a channel is subscribed to on each connection, and its broadcasts are notifications`() throws {
        var session = session
        #expect(session.request { $0.subscribe(to: channel) } == [subscribe(1)])
        #expect(session.received(suback(1, .grantedQoS1)) == [.report(.subscribed(channel))])
        let effects = session.received(broadcast(7))
        guard case .report(.notification(let notification))? = effects.first else {
            Issue.record("no notification: \(effects)")
            return
        }
        #expect(notification.channel == channel.id && notification.topic == channel.topic)
        #expect(notification.id == NotificationID(high: 1, low: 2) && notification.pushType == .liveactivity)
        #expect(effects.last == .send(.puback(MQTTPublishAnswer(packetIdentifier: 7))))
        #expect(session.connectAgain().contains(subscribe(1)))
    }

    @Test func `a refused channel is reported in words, and asked for again later`() throws {
        var session = session
        _ = session.request { $0.subscribe(to: channel) }
        let reason =
            "not authorized (the app has no such channel in production); it was deleted, or is of another app or of the "
            + "other environment"
        #expect(
            session.received(suback(1, .notAuthorized, "the app has no such channel in production")) == [
                .report(.channelRefused(channel, reason: reason))
            ]
        )
        #expect(session.retryFailedRequests() == [subscribe(2)])
        #expect(
            session.received(suback(2, .quotaExceeded)) == [
                .report(.channelRefused(channel, reason: MQTTReasonCode.quotaExceeded.words))
            ]
        )
    }

    @Test func `a subscription that ends is unsubscribed on this connection, and not made on the next one`() throws {
        var session = session
        _ = session.request { $0.subscribe(to: channel) }
        #expect(session.request { $0.unsubscribe(from: channel) } == [.send(.unsubscribe(from: Self.filter, 2))])
        // The answer to the former request is ignored.
        #expect(session.received(suback(1, .grantedQoS1)) == [])
        #expect(session.received(broadcast(7)) == [.send(.puback(MQTTPublishAnswer(packetIdentifier: 7)))])
        #expect(session.request { $0.subscribe(to: channel) } == [subscribe(3)])
        _ = session.request { $0.unsubscribe(from: channel) }
        #expect(session.connectAgain() == [.live(keepAlive: .seconds(300)), .report(.connected)])
    }

    @Test(arguments: ["", "AAAA", "+/8CAwQFBgcICQoLDA0ODw==A", "not base64!", String(repeating: "A", count: 65)])
    func `a text that is not the base64 of 16 bytes is not a channel`(text: String) {
        #expect(DeviceChannel(text, of: channel.topic) == nil)
    }
}
