import HeraldModel
import HeraldWire
import Testing

@testable import HeraldDevice

@Suite struct DeviceSessionTests {
    private let chat = Topic("com.example.chat")
    private let voip = Topic("com.example.chat.voip")

    private func configuration() throws -> DeviceConfiguration {
        var configuration = DeviceConfiguration(
            host: "localhost",
            port: 1,
            credential: try DeviceCredential(pem: try IdentityFile.pem.get()),
            apps: [chat, voip].compactMap { $0 }
        )
        configuration.keepAlive = .seconds(100)
        return configuration
    }

    private func session() throws -> RememberingSession {
        RememberingSession(try configuration())
    }

    private func liveSession() throws -> RememberingSession {
        var session = try session()
        _ = session.received(.connack(MQTTConnack()))
        return session
    }

    private func publish(_ topic: String, _ payload: String = "{}", properties: MQTTProperties = []) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic,
                packetIdentifier: 7,
                qualityOfService: .atLeastOnce,
                properties: properties,
                payload: Array(payload.utf8)
            )
        )
    }

    private func end(_ effects: [DeviceSession.Effect]) -> DeviceSession.End? {
        for case .end(let end) in effects { return end }
        return nil
    }

    @Test func `the first packet names the device of the certificate and starts clean`() throws {
        guard case .connect(let connect) = try session().connect else {
            Issue.record("not a CONNECT")
            return
        }
        #expect(connect.clientIdentifier == "kitchen")
        #expect(connect.isClean)
        #expect(connect.keepAlive == 100)
        #expect(connect.properties.receiveMaximum == 16)
        #expect(connect.properties.maximumPacketSize == 16_384)
    }

    @Test func `after CONNACK it subscribes to each app`() throws {
        var session = try session()
        #expect(
            session.received(.connack(MQTTConnack())) == [
                .live(keepAlive: .seconds(100)), .report(.connected),
                .send(subscribe("apps/com.example.chat/#", 1)), .send(subscribe("apps/com.example.chat.voip/#", 2)),
            ]
        )
    }

    @Test func `an app presents the device token that it holds`() throws {
        let token = DeviceToken(words: (1, 2, 3, 4))
        var session = try session()
        session.memory.hold(token, for: try #require(voip))
        let effects = session.received(.connack(MQTTConnack()))
        let held: MQTTProperties = [.userProperty(name: "token", value: token.hex)]
        #expect(effects.last == .send(subscribe("apps/com.example.chat.voip/#", 2, properties: held)))
        // A service may require each token after every connect, also one that it has just given.
        let given = String(repeating: "0a", count: 32)
        let answer = session.received(publish("apps/com.example.chat/token", given))
        #expect(session.memory.tokens.count == 2)
        guard case .send(.publish(let presented))? = answer.last else {
            Issue.record("the token is not presented")
            return
        }
        #expect(presented.topic == "apps/com.example.chat/token" && presented.payload == Array(given.utf8))
        #expect(presented.packetIdentifier == 3 && presented.qualityOfService == .atLeastOnce)
        #expect(session.received(.puback(MQTTPublishAnswer(packetIdentifier: 3))).isEmpty)
        #expect(session.received(publish("apps/com.example.chat/token", given)).count == 2, "it was presented")
        let next = session.connectAgain()
        #expect(next.count == 4, "with SUBSCRIBE")
    }

    private func subscribe(_ filter: String, _ identifier: UInt16, properties: MQTTProperties = []) -> MQTTPacket {
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: identifier,
                properties: properties,
                subscriptions: [MQTTSubscription(filter: filter)]
            )
        )
    }

    @Test func `the server keep-alive replaces the client's`() throws {
        var session = try session()
        let effects = session.received(.connack(MQTTConnack(properties: [.serverKeepAlive(30)])))
        #expect(effects.first == .live(keepAlive: .seconds(30)))
    }

    @Test func `a notification is acknowledged after it was reported`() throws {
        var session = try liveSession()
        let effects = session.received(
            publish(
                "apps/com.example.chat",
                #"{"aps":{}}"#,
                properties: [
                    .messageExpiryInterval(60),
                    .userProperty(name: "apns-id", value: "00000000-0000-0001-0000-000000000002"),
                    .userProperty(name: "apns-push-type", value: "alert"),
                    .userProperty(name: "apns-priority", value: "5"),
                    .userProperty(name: "apns-collapse-id", value: "c"),
                ]
            )
        )
        let notification = ReceivedNotification(
            topic: try #require(chat),
            payload: Array(#"{"aps":{}}"#.utf8),
            id: NotificationID(high: 1, low: 2),
            pushType: .alert,
            priority: .conserving,
            collapseID: "c",
            expiresIn: .seconds(60),
            isRepeated: false
        )
        #expect(
            effects == [
                .report(.notification(notification)),
                .remember(try #require(SeenNotifications.Key(notification))),
                .send(.puback(MQTTPublishAnswer(packetIdentifier: 7))),
            ]
        )
    }

    @Test func `a notification may lack all properties`() throws {
        var session = try liveSession()
        let properties: MQTTProperties = [
            .userProperty(name: "apns-id", value: "x"), .userProperty(name: "apns-priority", value: "300"),
        ]
        guard case .report(.notification(let read)) = session.received(publish("apps/a", properties: properties)).first
        else {
            Issue.record("no notification")
            return
        }
        #expect(read.id == nil && read.priority == nil && read.pushType == nil && read.expiresIn == nil)
    }

    @Test func `a device token is reported for its app`() throws {
        var session = try liveSession()
        let effects = session.received(publish("apps/com.example.chat/token", String(repeating: "0A", count: 32)))
        let token = try #require(DeviceToken(String(repeating: "0a", count: 32)))
        #expect(effects.first == .report(.token(token, for: try #require(chat))))
    }

    @Test func `an app that is refused is reported with the reason`() throws {
        var session = try liveSession()
        let suback = MQTTSubscriptionAnswer(
            packetIdentifier: 2,
            properties: [.reasonString("too many apps")],
            reasonCodes: [.quotaExceeded]
        )
        let app = try #require(voip)
        #expect(
            session.received(.suback(suback)) == [
                .report(.appRefused(app, reason: "a limit is reached (too many apps)"))
            ]
        )
    }

    @Test func `a publish to another topic is acknowledged and not reported`() throws {
        var session = try liveSession()
        #expect(session.received(publish("news/today")) == [.send(.puback(MQTTPublishAnswer(packetIdentifier: 7)))])
    }

    @Test(arguments: [
        (MQTTReasonCode.clientIdentifierNotValid, DeviceSession.End.Advice.giveUp), (.notAuthorized, .dismissed),
        (.banned, .dismissed), (.unsupportedProtocolVersion, .giveUp), (.serverUnavailable, .retry),
        (.serverBusy, .retryLater),
        (.connectionRateExceeded, .retryLater), (.quotaExceeded, .retryLater), (.malformedPacket, .giveUp),
        (.protocolError, .giveUp), (.packetTooLarge, .giveUp), (.badAuthenticationMethod, .giveUp),
        (.qosNotSupported, .giveUp), (.retainNotSupported, .giveUp),
    ])
    func `a CONNACK code decides whether to reconnect`(code: MQTTReasonCode, advice: DeviceSession.End.Advice) throws {
        var session = try session()
        let effects = session.received(.connack(MQTTConnack(reasonCode: code, properties: [.reasonString("why")])))
        #expect(end(effects)?.advice == advice)
        let remedy = advice == .dismissed ? "; \(DeviceConnector.remedy)" : ""
        #expect(end(effects)?.reason == "the service refused the connection: \(code.words) (why)\(remedy)")
    }

    @Test(arguments: [
        (MQTTReasonCode.serverShuttingDown, DeviceSession.End.Advice.retry), (.sessionTakenOver, .takenOver),
        (.keepAliveTimeout, .retry), (.administrativeAction, .retry), (.notAuthorized, .retry), (.success, .retry),
        (.serverBusy, .retryLater), (.quotaExceeded, .retryLater), (.messageRateTooHigh, .retryLater),
        (.protocolError, .retry), (.packetTooLarge, .retry), (.banned, .retry), (.unspecifiedError, .retry),
    ])
    func `a DISCONNECT code decides whether to reconnect`(code: MQTTReasonCode, advice: DeviceSession.End.Advice) throws
    {
        var session = try liveSession()
        let end = end(session.received(.disconnect(MQTTDisconnect(reasonCode: code))))
        #expect(end?.advice == advice)
        #expect(end?.reason == "the service ended the connection: \(code.words)")
    }

    @Test func `a refusal is not final if the device has another certificate by then`() {
        for advice in [DeviceSession.End.Advice.giveUp, .dismissed] {
            let refused = DeviceSession.End(advice: advice, reason: "revoked").withNextCredential
            #expect(refused.advice == .retry)
            #expect(refused.reason.contains("the renewed one is used next"))
        }
        let busy = DeviceSession.End(advice: .retryLater, reason: "busy")
        #expect(busy.withNextCredential == busy)
    }

    @Test func `rejected tokens are dropped, and the device reconnects without them`() throws {
        var session = try liveSession()
        let token = DeviceToken(words: (1, 2, 3, 4))
        let topic = try #require(session.memory.apps.first?.value.topic)
        session.memory.hold(token, for: topic)
        let refusal = MQTTPacket.disconnect(MQTTDisconnect(reasonCode: .notAuthorized))
        #expect(end(session.received(refusal))?.advice == .retry)
        #expect(session.memory.tokens.isEmpty)
        _ = session.connectAgain()
        #expect(end(session.received(refusal))?.advice == .retry, "if it was for the certificate, CONNACK says so")
    }

    @Test(arguments: [
        MQTTPacket.pingreq, .connack(MQTTConnack()),
        .suback(MQTTSubscriptionAnswer(packetIdentifier: 3, reasonCodes: [.success])),
        .suback(MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [])),
        .publish(MQTTPublish(topic: "apps/a/token", payload: [1])),
        .publish(MQTTPublish(topic: "apps/a", packetIdentifier: 1, qualityOfService: .exactlyOnce, payload: [])),
    ])
    func `a packet out of sequence ends the connection with DISCONNECT`(packet: MQTTPacket) throws {
        var session = try liveSession()
        let effects = session.received(packet)
        #expect(end(effects)?.advice == .retryLater)
        guard effects.count >= 2, case .send(.disconnect(let disconnect)) = effects[effects.count - 2] else {
            Issue.record("no DISCONNECT: \(effects)")
            return
        }
        #expect(disconnect.reasonCode.isFailure)
        #expect(session.received(.pingresp).isEmpty)
    }

    @Test func `before CONNACK it sends only CONNECT`() throws {
        var session = try session()
        #expect(session.received(.pingresp).count == 1)
    }
}
