import HeraldModel
import HeraldWire
import Testing

@testable import HeraldDevice

@Suite struct DeviceSessionTests {
    private let token = DeviceToken(words: (1, 2, 3, 4))

    private func topic() throws -> Topic { try #require(Topic("com.example.chat")) }

    private func connack(_ code: MQTTReasonCode = .success, id: String? = "kitchen") -> MQTTPacket {
        let properties = id.map { [MQTTProperty.assignedClientIdentifier($0)] } ?? []
        return .connack(MQTTConnack(reasonCode: code, properties: MQTTProperties(properties)))
    }

    private func session(holding token: DeviceToken? = nil) throws -> DeviceSession {
        let topic = try topic()
        return DeviceSession(topics: [topic], keepAlive: .seconds(60), tokens: token.map { [topic: $0] } ?? [:])
    }

    @Test func `it leaves the identifier to the service and registers its apps once it is let in`() throws {
        var session = try session()
        guard case .connect(let connect) = session.connect() else {
            Issue.record("begins with another packet")
            return
        }
        #expect(connect.clientIdentifier.isEmpty && connect.isClean && connect.keepAlive == 60)
        let actions = try session.received(connack())
        #expect(actions.count == 2)
        #expect(actions.first == .connected(try #require(DeviceID("kitchen")), keepAlive: .seconds(60)))
        guard case .send(.subscribe(let subscribe))? = actions.last else {
            Issue.record("does not subscribe")
            return
        }
        #expect(subscribe.subscriptions.map(\.filter) == ["apps/com.example.chat/#"])
        #expect(subscribe.properties.isEmpty)
    }

    @Test func `it presents the token that it holds`() throws {
        var session = try session(holding: token)
        let actions = try session.received(connack())
        guard case .send(.subscribe(let subscribe))? = actions.last else {
            Issue.record("does not subscribe")
            return
        }
        #expect(subscribe.properties == [.userProperty(name: "token", value: token.hex)])
    }

    @Test func `a notification is answered after it was handed on, with its properties`() throws {
        var session = try session()
        let publish = MQTTPublish(
            topic: "apps/com.example.chat",
            packetIdentifier: 7,
            qualityOfService: .atLeastOnce,
            properties: [
                .messageExpiryInterval(60),
                .userProperty(name: "apns-id", value: "f4121b12-e0bf-3266-f079-d9253e98bf49"),
                .userProperty(name: "apns-push-type", value: "alert"), .userProperty(name: "apns-priority", value: "5"),
                .userProperty(name: "apns-collapse-id", value: "score"),
            ],
            payload: Array("{}".utf8)
        )
        let expected = DeviceNotification(
            topic: try topic(),
            payload: Array("{}".utf8),
            id: NotificationID("f4121b12-e0bf-3266-f079-d9253e98bf49"),
            pushType: .alert,
            priority: .conserving,
            collapseID: "score",
            expiresIn: .seconds(60)
        )
        let answer = MQTTPacket.puback(MQTTPublishAnswer(packetIdentifier: 7))
        #expect(try session.received(.publish(publish)) == [.notification(expected, then: answer)])
    }

    @Test func `a token is remembered for the next connection`() throws {
        var session = try session()
        let topic = try topic()
        let publish = MQTTPublish(
            topic: "apps/com.example.chat/token",
            packetIdentifier: 1,
            qualityOfService: .atLeastOnce,
            payload: Array(token.hex.utf8)
        )
        let answer = MQTTPacket.puback(MQTTPublishAnswer(packetIdentifier: 1))
        #expect(try session.received(.publish(publish)) == [.token(token, topic), .send(answer)])
        #expect(session.tokens == [topic: token])
    }

    @Test func `a refused connection and a farewell say why`() throws {
        var session = try session()
        let refusal = MQTTConnack(reasonCode: .notAuthorized, properties: [.reasonString("revoked")])
        let refused = #expect(throws: DeviceError.self) { try session.received(.connack(refusal)) }
        #expect(refused?.code == .refused && refused?.message == "revoked (0x87)")
        let farewell = MQTTDisconnect(reasonCode: .sessionTakenOver)
        let lost = #expect(throws: DeviceError.self) { try session.received(.disconnect(farewell)) }
        #expect(lost?.code == .lost && lost?.message.contains("0x8e") == true)
    }

    @Test func `a refused app is told apart from the connection`() throws {
        var session = try session()
        _ = try session.received(connack())
        let suback = MQTTSuback(packetIdentifier: 1, reasonCodes: [.quotaExceeded])
        let topic = try topic()
        #expect(try session.received(.suback(suback)) == [.refused(topic, reason: "the service's reason code is 0x97")])
    }
}

@Suite struct BackoffTests {
    @Test func `the wait doubles to its longest, with jitter below the bound`() {
        let backoff = Backoff(first: .seconds(1), longest: .seconds(10))
        var generator = SystemRandomNumberGenerator()
        for (failures, bound) in [(-1, 1), (0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (1000, 10)] {
            for _ in 0..<20 {
                let wait = backoff.wait(afterFailures: failures, using: &generator)
                #expect(wait >= .seconds(bound) / 2 && wait <= .seconds(bound))
            }
        }
    }
}
