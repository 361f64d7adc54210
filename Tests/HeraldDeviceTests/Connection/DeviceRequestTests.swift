import HeraldModel
import HeraldWire
import Testing

@testable import HeraldDevice

/// Requests of a connected device, and after the connection has ended.
@Suite struct DeviceRequestTests {
    private let chat: Topic
    private let news: Topic
    private var session: RememberingSession

    init() throws {
        chat = try #require(Topic("com.example.chat"))
        news = try #require(Topic("com.example.news"))
        session = RememberingSession(
            DeviceConfiguration(
                host: "localhost",
                port: 1,
                credential: try DeviceCredential(pem: try IdentityFile.pem.get()),
                apps: [chat]
            )
        )
        _ = session.received(.connack(MQTTConnack()))
        _ = session.received(.suback(MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [.grantedQoS1])))
    }

    private func subscribe(_ topic: Topic, _ identifier: UInt16, _ environment: String? = nil) -> DeviceSession.Effect {
        .send(
            .subscribe(
                MQTTSubscribe(
                    packetIdentifier: identifier,
                    properties: properties(environment),
                    subscriptions: [MQTTSubscription(filter: "apps/\(topic)/#")]
                )
            )
        )
    }

    private func unsubscribe(_ topic: Topic, _ identifier: UInt16, _ environment: String? = nil) -> DeviceSession.Effect
    {
        .send(
            .unsubscribe(
                MQTTUnsubscribe(
                    packetIdentifier: identifier,
                    properties: properties(environment),
                    filters: ["apps/\(topic)/#"]
                )
            )
        )
    }

    private func properties(_ environment: String?) -> MQTTProperties {
        MQTTProperties(environment.map { [.userProperty(name: "environment", value: $0)] } ?? [])
    }

    private func message(_ topic: String, _ json: String, _ identifier: UInt16) -> DeviceSession.Effect {
        .send(
            .publish(
                MQTTPublish(
                    topic: topic,
                    packetIdentifier: identifier,
                    qualityOfService: .atLeastOnce,
                    payload: Array(json.utf8)
                )
            )
        )
    }

    private func puback(_ identifier: UInt16, _ code: MQTTReasonCode = .success) -> MQTTPacket {
        .puback(MQTTPublishAnswer(packetIdentifier: identifier, reasonCode: code))
    }

    private func unsuback(_ identifier: UInt16, _ code: MQTTReasonCode = .success) -> MQTTPacket {
        .unsuback(MQTTSubscriptionAnswer(packetIdentifier: identifier, reasonCodes: [code]))
    }

    private func token(_ topic: Topic) -> MQTTPacket {
        .publish(MQTTPublish(topic: "apps/\(topic)/token", payload: Array(String(repeating: "0a", count: 32).utf8)))
    }

    private func notification(_ topic: Topic, id: String = "00000000-0000-0001-0000-000000000002") -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: "apps/\(topic)",
                packetIdentifier: 9,
                qualityOfService: .atLeastOnce,
                properties: [.userProperty(name: "apns-id", value: id)],
                payload: Array("{}".utf8)
            )
        )
    }

    private let acknowledgement = DeviceSession.Effect.send(.puback(MQTTPublishAnswer(packetIdentifier: 9)))

    @Test mutating func `an app is registered on the open connection, and on each later one`() {
        let app = DeviceApp(topic: news, environment: .sandbox)
        #expect(session.request { $0.install(app) } == [subscribe(news, 2, "sandbox")])
        #expect(session.request { _ in }.isEmpty)
        #expect(session.connectAgain().suffix(2) == [subscribe(chat, 1), subscribe(news, 2, "sandbox")])
    }

    @Test mutating func `a refused app is requested again when it is installed again`() {
        _ = session.request { $0.install(DeviceApp(topic: news)) }
        let refusal = MQTTPacket.suback(MQTTSubscriptionAnswer(packetIdentifier: 2, reasonCodes: [.quotaExceeded]))
        #expect(session.received(refusal) == [.report(.appRefused(news, reason: "a limit is reached"))])
        #expect(session.request { _ in }.isEmpty)
        let app = DeviceApp(topic: news)
        #expect(session.request { $0.install(app) } == [subscribe(news, 3)])
    }

    @Test mutating func `a removal is reported when the service has confirmed it`() {
        let chat = chat
        #expect(session.request { $0.remove(chat, in: nil) } == [unsubscribe(chat, 2)])
        #expect(session.received(unsuback(2)) == [.report(.removed(chat))])
        #expect(session.connectAgain().count == 2)
    }

    @Test mutating func `a removal that was not confirmed is sent again, with the app's environment`() {
        let news = news
        _ = session.request { $0.install(DeviceApp(topic: news, environment: .sandbox)) }
        #expect(session.request { $0.remove(news, in: nil) } == [unsubscribe(news, 3, "sandbox")])
        #expect(session.connectAgain().suffix(2) == [unsubscribe(news, 1, "sandbox"), subscribe(chat, 2)])
        // Nothing was there any more: so it is removed.
        #expect(session.received(unsuback(1, .noSubscriptionExisted)) == [.report(.removed(news))])
    }

    @Test mutating func `an app of an earlier run is removed in the given environment`() {
        let news = news
        #expect(session.request { $0.remove(news, in: .sandbox) } == [unsubscribe(news, 2, "sandbox")])
    }

    @Test mutating func `an app that is installed again is a new registration`() {
        let (chat, app) = (chat, DeviceApp(topic: chat))
        _ = session.received(token(chat))
        #expect(session.request { $0.remove(chat, in: nil) }.count == 1)
        #expect(session.request { $0.install(app) }.isEmpty)
        // That of the registration which goes.
        #expect(session.received(token(chat)).isEmpty)
        // And its token is not presented.
        #expect(session.received(unsuback(3)) == [.report(.removed(chat)), subscribe(chat, 4)])
        #expect(session.received(token(chat)).count == 2)
    }

    @Test mutating func `an app that news its environment loses its old registration`() {
        let app = DeviceApp(topic: chat, environment: .sandbox)
        #expect(session.request { $0.install(app) } == [unsubscribe(chat, 2)])
        #expect(session.received(unsuback(2)) == [.report(.removed(chat)), subscribe(chat, 3, "sandbox")])
    }

    @Test mutating func `a notification for an app under removal is acknowledged and not reported`() {
        let chat = chat
        _ = session.request { $0.remove(chat, in: nil) }
        #expect(session.received(notification(chat)) == [acknowledgement])
    }

    @Test mutating func `settings are sent until they are acknowledged, and only the last of them counts`() {
        let chat = chat
        #expect(
            session.request { $0.setEnabled(false, for: chat) }
                == [message("apps/com.example.chat/settings", #"{"enabled":false}"#, 2)]
        )
        #expect(
            session.request { $0.setEnabled(true, for: chat) }
                == [message("apps/com.example.chat/settings", #"{"enabled":true}"#, 3)]
        )
        #expect(session.received(puback(2)).isEmpty)
        let again = message("apps/com.example.chat/settings", #"{"enabled":true}"#, 2)
        #expect(session.connectAgain().suffix(2) == [subscribe(chat, 1), again])
        #expect(session.received(puback(2)) == [.report(.settingsTaken(chat, isEnabled: true))])
        #expect(session.connectAgain().count == 3)
    }

    @Test mutating func `settings of a missing app are ignored, and removed with the app`() {
        let (chat, news) = (chat, news)
        #expect(session.request { $0.setEnabled(false, for: news) }.isEmpty)
        _ = session.request { $0.setEnabled(false, for: chat) }
        _ = session.request { $0.remove(chat, in: nil) }
        #expect(session.memory.settings.isEmpty)
    }

    @Test mutating func `the power mode is sent until it is acknowledged`() {
        #expect(session.request { $0.setSaving(true) } == [message("device/power", #"{"saving":true}"#, 2)])
        #expect(session.connectAgain().last == message("device/power", #"{"saving":true}"#, 2))
        #expect(session.received(puback(2)).isEmpty)
        #expect(session.connectAgain().count == 3)
    }

    @Test mutating func `a refused request is repeated after a while`() {
        let chat = chat
        _ = session.request { $0.setEnabled(false, for: chat) }
        #expect(session.received(puback(2, .unspecifiedError)).isEmpty)
        #expect(session.retryFailedRequests().count == 1)
        #expect(session.retryFailedRequests().isEmpty)
        #expect(session.received(puback(3)) == [.report(.settingsTaken(chat, isEnabled: false))])
    }

    @Test mutating func `the service's receive maximum is respected`() {
        _ = session.connectAgain()
        var connection = session
        _ = connection.connectAgain(receiveMaximum: 1)
        let chat = chat
        #expect(connection.request { $0.setEnabled(false, for: chat) }.count == 1)
        #expect(connection.request { $0.setSaving(true) }.isEmpty)
        #expect(connection.received(puback(2)).count == 2)
    }

    @Test(arguments: [
        MQTTPacket.puback(MQTTPublishAnswer(packetIdentifier: 77)),
        .unsuback(MQTTSubscriptionAnswer(packetIdentifier: 77, reasonCodes: [.success])),
    ])
    mutating func `an unexpected answer ends the connection`(packet: MQTTPacket) {
        guard case .end? = session.received(packet).last else {
            Issue.record("it goes on")
            return
        }
    }

    @Test mutating func `a duplicate is acknowledged again and not reported`() throws {
        let effects = session.received(notification(chat))
        guard case .remember(let key) = effects.dropFirst().first else {
            Issue.record("not remembered: \(effects)")
            return
        }
        session.memory.seen.insert(key)
        // On one connection nothing is sent twice: this is another one, whose provider gave it the same identifier.
        #expect(session.received(notification(chat)).count == 3)
        _ = session.connectAgain()
        #expect(session.received(notification(chat)) == [acknowledgement])
        #expect(session.received(notification(chat)).count == 3)
        #expect(session.received(notification(chat, id: "00000000-0000-0001-0000-000000000003")).count == 3)
    }
}
