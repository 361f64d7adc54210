import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldCourier
@testable import HeraldWire

/// Messages of devices, and the ends of their connections.
struct SessionPublishTests {
    private let chat = "com.example.chat"

    @Test func `settings turn an app's notifications off and on`() throws {
        var bench = try SessionBench.connected()
        bench.register(chat)
        bench.receive(SessionBench.publish("apps/com.example.chat/settings", #"{"enabled":false}"#))
        #expect(bench.sent.map(\.puback) == [.success])
        #expect(bench.disabled == [SessionBench.topic(chat)])
        bench.receive(
            SessionBench.publish(
                "apps/com.example.chat/settings",
                #" { "more": [{"enabled": 1, "a": "\"enabled\":"}, {"a": 2}], "enabled" : true} "#
            )
        )
        #expect(bench.disabled.isEmpty)
    }

    @Test(arguments: ["1e400", "18446744073709551616", "{\"\u{E9}\":1,\"e\u{301}\":2}"])
    func `settings are read whatever stands beside them`(value: String) throws {
        var bench = try SessionBench.connected()
        bench.register(chat)
        bench.receive(SessionBench.publish("apps/com.example.chat/settings", "{\"x\":\(value),\"enabled\":false}"))
        #expect(bench.sent.map(\.puback) == [.success])
        #expect(bench.disabled == [SessionBench.topic(chat)])
    }

    @Test func `settings of an app that is not registered are refused`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.publish("apps/com.example.chat/settings", #"{"enabled":false}"#))
        #expect(bench.sent.map(\.puback) == [.notAuthorized])
    }

    @Test func `power saving is stored, and passed on to the post office`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#, id: nil))
        #expect(bench.savesPower == true && bench.record.isSavingPower)
        #expect(bench.sent.isEmpty)
    }

    @Test(arguments: [
        "", "{", "[]", "null", "true", #"{"enabled":1}"#, #"{"enabled":"false"}"#, #"{"saving":true}"#,
        "{\"enabled\":\u{0}}", #"{"enabled":true,"enabled":false}"#, #"{"enabled":true, "\u0065nabled" :false}"#,
    ])
    func `a payload that does not fit the topic is refused with 0x99`(payload: String) throws {
        var bench = try SessionBench.connected()
        bench.register(chat)
        bench.receive(SessionBench.publish("apps/com.example.chat/settings", payload))
        #expect(bench.sent.map(\.puback) == [.payloadFormatInvalid])
        #expect(bench.disabled.isEmpty && !bench.hasEnded)
    }

    @Test(arguments: [
        "apps/com.example.chat", "channels/com.example.chat/a", "elsewhere", "$SYS/x", "apps/com.example.chat/tokens",
    ])
    func `other topics are refused with 0x87, in 3-1-1 by closing`(topic: String) throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.publish(topic, "x"))
        #expect(bench.sent.map(\.puback) == [.notAuthorized])
        #expect(!bench.hasEnded)
        // At QoS 0 there is no packet to refuse with.
        bench.receive(SessionBench.publish(topic, "x", id: nil))
        #expect(bench.sent.count == 1 && !bench.hasEnded)
        #expect(bench.refusedTopics == [.publish(topic), .publish(topic)])

        bench = try SessionBench.connected(.v311)
        bench.receive(SessionBench.publish(topic, "x"))
        #expect(bench.sent.isEmpty && bench.hasEnded)
        #expect(bench.refusedTopics == [.publish(topic)])
    }

    @Test func `PUBLISH at QoS 2 ends with 0x9B, retained with 0x9A, with an alias with 0x94`() throws {
        let publish = MQTTPublish(
            topic: "device/power",
            packetIdentifier: 1,
            qualityOfService: .exactlyOnce,
            payload: []
        )
        var bench = try SessionBench.connected()
        bench.receive(.publish(publish))
        #expect(bench.sent.map(\.disconnect) == [.qosNotSupported])
        bench = try SessionBench.connected()
        bench.receive(SessionBench.publish("device/power", "{}", isRetained: true))
        #expect(bench.sent.map(\.disconnect) == [.retainNotSupported])
        bench = try SessionBench.connected()
        bench.receive(SessionBench.publish("device/power", "{}", properties: [.topicAlias(1)]))
        #expect(bench.sent.map(\.disconnect) == [.topicAliasInvalid])
        bench = try SessionBench.connected(.v311)
        bench.receive(.publish(publish))
        #expect(bench.sent.isEmpty && bench.hasEnded)
    }

    @Test func `[MQTT-3.3.4-6] a subscription identifier in PUBLISH ends with 0x82`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.publish("device/power", "{}", properties: [.subscriptionIdentifier(1)]))
        #expect(bench.sent.map(\.disconnect) == [.protocolError])
    }

    @Test func `[MQTT-3.3.4-7] more messages than the receive maximum end with 0x93`() throws {
        var bench = try SessionBench.connected()
        bench.isHolding = true
        for id in 1...16 { bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#, id: UInt16(id))) }
        #expect(!bench.hasEnded)
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#, id: 17))
        #expect(bench.sent.map(\.disconnect) == [.receiveMaximumExceeded])
    }

    @Test func `a failed registry is answered with 0x80, in 3-1-1 by closing`() throws {
        var bench = try SessionBench.connected()
        bench.isRegistryDown = true
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#))
        #expect(bench.sent.map(\.puback) == [.unspecifiedError])
        #expect(bench.savesPower == nil)
        bench = try SessionBench.connected(.v311)
        bench.isRegistryDown = true
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#))
        #expect(bench.sent.isEmpty && bench.hasEnded)
    }

    @Test func `[MQTT-3.1.2-29] a device that wants no reason strings gets none`() throws {
        for (wanted, expected) in [(UInt8(1), "the app is not registered" as String?), (0, nil)] {
            var bench = try SessionBench.connected(properties: [.requestProblemInformation(wanted)])
            bench.receive(SessionBench.publish("apps/com.example.chat/settings", #"{"enabled":false}"#))
            guard case .puback(let puback) = bench.sent.first else { throw MQTTError(.unspecifiedError, "no PUBACK") }
            #expect(puback.properties.reasonString == expected)
        }
    }

    @Test(arguments: [
        ("", "is not a JSON object"), ("enabled", "is not a JSON object"), (#"["enabled"]"#, "is not a JSON object"),
        (#"{"enabled":true,"enabled":false}"#, "has a member twice"), ("{}", "has no member enabled"),
        (#"{"Enabled":true}"#, "has no member enabled"), (#"{"enabled":"yes"}"#, "neither true nor false"),
        (#"{"enabled":1}"#, "neither true nor false"), (#"{"enabled":null}"#, "neither true nor false"),
    ])
    func `a payload that is not understood is answered with what is wrong and with the right form`(
        payload: String,
        fault: String
    ) throws {
        let (app, form) = ("apps/com.example.chat/settings", #"send {"enabled":true} or {"enabled":false}"#)
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.publish(app, payload), SessionBench.publish(app, payload, id: nil))
        guard case .puback(let puback) = bench.sent.first else { throw MQTTError(.unspecifiedError, "no PUBACK") }
        let reason = try #require(puback.properties.reasonString)
        #expect(puback.reasonCode == .payloadFormatInvalid && reason.contains(fault) && reason.hasSuffix(form))
        // At QoS 0 the log alone has it.
        #expect(bench.refusedTopics == [.payload(app, reason), .payload(app, reason)])
        bench.receive(SessionBench.publish("device/power", payload.replacing("nabled", with: "aving")))
        guard case .puback(let power) = bench.sent.last else { throw MQTTError(.unspecifiedError, "no PUBACK") }
        #expect(power.properties.reasonString?.hasSuffix(#"send {"saving":true} or {"saving":false}"#) == true)
        bench = try SessionBench.connected(.v311)
        bench.receive(SessionBench.publish(app, payload))
        #expect(bench.sent.isEmpty && bench.hasEnded && bench.refusedTopics == [.payload(app, reason)])
    }

    // Presented tokens.

    @Test func `a token in force is accepted and not sent back`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.forgetSent()
        bench.receive(SessionBench.publish("apps/com.example.chat/token", SessionBench.token(AppNumber(1)).hex))
        #expect(bench.sent.map(\.puback) == [.success])
        #expect(bench.tokens.isEmpty && !bench.hasEnded)
    }

    @Test func `a stale token is answered with the one in force`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/token"))
        bench.forgetSent()
        let stale = SessionBench.token(AppNumber(1), generation: 0)
        bench.receive(SessionBench.publish("apps/com.example.chat/token", stale.hex.uppercased()))
        #expect(bench.log == ["puback", "token"])
        #expect(bench.tokens.map(\.token) == [SessionBench.token(AppNumber(1))])
    }

    @Test func `a stale token ends with 0x87 if the device is not subscribed to the answer`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.forgetSent()
        bench.receive(
            SessionBench.publish("apps/com.example.chat/token", SessionBench.token(AppNumber(1), generation: 0).hex)
        )
        #expect(bench.sent.map(\.disconnect) == [.notAuthorized])
    }

    @Test func `a forged, foreign or unreadable token ends with 0x87`() throws {
        let foreign = SessionBench.token(AppNumber(1), device: DeviceNumber(8)).hex
        for payload in [foreign, String(repeating: "0", count: 64), "", "zz", foreign + "\n"] {
            var bench = try SessionBench.connected()
            bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
            bench.forgetSent()
            bench.receive(SessionBench.publish("apps/com.example.chat/token", payload))
            #expect(bench.sent.map(\.disconnect) == [.notAuthorized])
            #expect(bench.faults == [.foreignToken])

            bench = try SessionBench.connected()
            bench.receive(
                SessionBench.subscribe(
                    "apps/com.example.chat/#",
                    properties: [.userProperty(name: "token", value: payload)]
                )
            )
            #expect(bench.sent.map(\.disconnect) == [.notAuthorized])
            #expect(bench.registered.isEmpty)
        }
    }

    @Test func `tokens presented with SUBSCRIBE`() throws {
        let current = MQTTProperty.userProperty(name: "token", value: SessionBench.token(AppNumber(1)).hex)
        let stale = MQTTProperty.userProperty(name: "token", value: SessionBench.token(AppNumber(1), generation: 0).hex)
        let other = MQTTProperty.userProperty(name: "note", value: "not a token")
        for properties in [[current], [stale], [stale, current, other]] {
            var bench = try SessionBench.connected()
            bench.register(chat)
            bench.receive(SessionBench.subscribe("apps/com.example.chat/#", properties: MQTTProperties(properties)))
            #expect(bench.log == ["suback", "token", "open"])
            #expect(bench.tokens.count == 1)
        }
        var bench = try SessionBench.connected()
        bench.register(chat)
        bench.receive(SessionBench.subscribe("apps/com.example.mail/#", properties: [stale]))
        #expect(bench.sent.map(\.disconnect) == [.notAuthorized])

        bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.forgetSent()
        bench.receive(SessionBench.subscribe("apps/com.example.mail", properties: [stale]))
        #expect(bench.tokens.map(\.app) == [AppNumber(1)])
    }

    // Ends.

    @Test func `[MQTT-3.1.2-22] one and a half keep-alives without a packet end the connection`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(keepAlive: 20))
        #expect(bench.terms?.keepAliveTimeout == 30)
        bench.forgetSent()
        bench.fallSilent()
        #expect(bench.sent.map(\.disconnect) == [.keepAliveTimeout])
        #expect(bench.hasEnded)
    }

    @Test func `a connection without CONNECT is closed without a packet`() throws {
        var bench = try SessionBench()
        bench.fallSilent()
        #expect(bench.sent.isEmpty && bench.hasEnded)
    }

    @Test
    func `[MQTT-3.1.4-3] a takeover ends the older connection with 0x8E, and leaves its session to the newer one`()
        throws
    {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.dismiss(.takenOver)
        #expect(bench.sent.map(\.disconnect) == [.sessionTakenOver])
        bench.disconnect()
        #expect(bench.released.map(\.session) == [.unchanged])
    }

    @Test func `3-1-1 has no DISCONNECT from the server`() throws {
        for reason in [DismissalReason.takenOver, .revoked, .shuttingDown] {
            var bench = try SessionBench.connected(.v311)
            bench.dismiss(reason)
            #expect(bench.sent.isEmpty && bench.hasEnded)
        }
    }

    @Test func `a reason code says why the service ends a connection, and the session is kept`() throws {
        for (reason, code) in [
            (DismissalReason.shuttingDown, MQTTReasonCode.serverShuttingDown), (.revoked, .notAuthorized),
            (.disconnected, .administrativeAction), (.sentAway, .serverBusy),
        ] {
            var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
            bench.dismiss(reason)
            #expect(bench.sent.map(\.disconnect) == [code])
            bench.disconnect()
            #expect(bench.released.count == 1 && bench.released[0].session != .unchanged)
        }
    }

    @Test func `[MQTT-3.14.0-1] no DISCONNECT before CONNACK`() throws {
        var bench = try SessionBench()
        bench.isHolding = true
        bench.receive(SessionBench.connect())
        bench.dismiss(.shuttingDown)
        #expect(bench.sent.map(\.kind) == [.connack])
        #expect(bench.sent.first?.connack?.reasonCode == .serverUnavailable)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `[MQTT-3.14.4-1] DISCONNECT ends the connection without an answer`(version: MQTTVersion) throws {
        var bench = try SessionBench.connected(version)
        bench.receive(.disconnect(MQTTDisconnect()))
        #expect(bench.sent.isEmpty && bench.hasEnded)
        #expect(!bench.machine.canReceive)
    }

    @Test func `DISCONNECT can end the session, but not make one`() throws {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.receive(.disconnect(MQTTDisconnect(properties: [.sessionExpiryInterval(0)])))
        bench.disconnect()
        #expect(bench.released.map(\.session) == [.drop])

        bench = try SessionBench.connected()
        bench.receive(.disconnect(MQTTDisconnect(properties: [.sessionExpiryInterval(100)])))
        #expect(bench.sent.map(\.disconnect) == [.protocolError])
    }

    @Test func `packets that only servers send end with 0x82`() throws {
        let packets: [MQTTPacket] = [
            .connack(MQTTConnack()), .suback(MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [])),
            .unsuback(MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [])), .pingresp,
            .auth(MQTTAuth(reasonCode: .reauthenticate)),
        ]
        for packet in packets {
            var bench = try SessionBench.connected()
            bench.receive(packet)
            #expect(bench.sent.map(\.disconnect) == [.protocolError])
        }
    }

    @Test func `PUBREL of an unknown message is answered with 0x92, PUBREC and PUBCOMP end with 0x82`() throws {
        var bench = try SessionBench.connected()
        bench.receive(.pubrel(MQTTPublishAnswer(packetIdentifier: 9)))
        guard case .pubcomp(let answer)? = bench.sent.first else { throw MQTTError(.unspecifiedError, "no PUBCOMP") }
        #expect(answer.packetIdentifier == 9 && answer.reasonCode == .packetIdentifierNotFound)
        bench.receive(.pubrec(MQTTPublishAnswer(packetIdentifier: 8)))
        #expect(bench.sent.last?.disconnect == .protocolError)
    }

    @Test func `bytes that are not a packet end with their reason code`() throws {
        var bench = try SessionBench.connected()
        bench.fail(.packetTooLarge)
        #expect(bench.sent.map(\.disconnect) == [.packetTooLarge])
        bench = try SessionBench.connected(.v311)
        bench.fail(.malformedPacket)
        #expect(bench.sent.isEmpty && bench.hasEnded)
    }

    @Test func `a request that is under way when the connection ends gets no answer`() throws {
        var bench = try SessionBench.connected()
        bench.isHolding = true
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.dismiss(.takenOver)
        bench.disconnect()
        bench.release()
        #expect(bench.sent.map(\.kind) == [.disconnect])
        #expect(bench.open.isEmpty && bench.released.count == 1)
    }
}
