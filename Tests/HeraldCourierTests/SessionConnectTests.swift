import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldCourier
@testable import HeraldWire

/// CONNECT and CONNACK; the numbers are those of MQTT 5, unless a name says 3.1.1.
struct SessionConnectTests {
    @Test(arguments: MQTTVersion.allCases)
    func `[MQTT-3.2.0-1] the first packet of the server is CONNACK`(version: MQTTVersion) throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(version))
        #expect(bench.sent.first?.connack?.reasonCode == .success)
        #expect(bench.log == ["attach", "connack"])
    }

    @Test func `[MQTT-3.1.0-2] a second CONNECT ends the connection`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.connect())
        #expect(bench.sent.first?.disconnect == .protocolError)
        #expect(bench.hasEnded)
    }

    @Test func `nothing is read between CONNECT and CONNACK`() throws {
        var bench = try SessionBench()
        bench.isHolding = true
        bench.receive(SessionBench.connect())
        #expect(!bench.machine.canReceive)
        bench.release()
        #expect(bench.machine.canReceive)
    }

    @Test func `[MQTT-3.1.3-8] another client identifier is refused with 0x85 and told the right one`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(id: "somebody"))
        #expect(bench.sent.first?.connack?.reasonCode == .clientIdentifierNotValid)
        #expect(bench.sent.first?.connack?.properties.reasonString == "use device-7")
        #expect(bench.hasEnded && bench.requests.isEmpty)
    }

    @Test func `3-1-1 [MQTT-3.1.3-9] another client identifier is refused with return code 2`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(.v311, id: "somebody"))
        let connack = try #require(bench.sent.first?.connack)
        #expect(connack.reasonCode.connectReturnCode == 2)
        #expect(connack.properties.isEmpty)
    }

    @Test(arguments: ["Device-7", "device-7 ", "device-7\u{301}", "\u{FEFF}device-7"])
    func `the client identifier is compared byte for byte`(id: String) throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(id: id))
        #expect(bench.sent.first?.connack?.reasonCode == .clientIdentifierNotValid)
    }

    @Test func `[MQTT-3.1.3-6] [MQTT-3.2.2-16] an empty client identifier is given the device's`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(id: "", isClean: true))
        #expect(bench.sent.first?.connack?.properties.entries.contains(.assignedClientIdentifier("device-7")) == true)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `3-1-1 [MQTT-3.1.3-8] an empty client identifier without a clean session is refused`(
        version: MQTTVersion
    ) throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(version, id: "", isClean: false))
        #expect(bench.sent.first?.connack?.reasonCode == .clientIdentifierNotValid)
    }

    @Test func `3-1-1 [MQTT-3.1.3-7] an empty client identifier with a clean session is accepted`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(.v311, id: "", isClean: true))
        #expect(bench.sent.first?.connack == MQTTConnack())
    }

    @Test func `[MQTT-4.12.0-1] an authentication method is refused with 0x8C`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(properties: [.authenticationMethod("SCRAM-SHA-1")]))
        #expect(bench.sent.first?.connack?.reasonCode == .badAuthenticationMethod)
        #expect(bench.hasEnded)
    }

    @Test func `[MQTT-3.2.2-9] [MQTT-3.2.2-22] CONNACK announces what is not available`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect())
        let properties = try #require(bench.sent.first?.connack?.properties)
        let announced: [MQTTProperty] = [
            .maximumQoS(1), .retainAvailable(0), .sharedSubscriptionAvailable(0), .subscriptionIdentifierAvailable(0),
            .topicAliasMaximum(0), .receiveMaximum(16), .maximumPacketSize(65_536),
        ]
        // Wildcard subscriptions are available: `apps/<topic>/#` is one.
        #expect(Set(properties.entries) == Set(announced))
    }

    @Test(arguments: [
        (UInt16(0), UInt16?.some(1800), 2700.0), (1801, 1800, 2700), (.max, 1800, 2700), (1800, nil, 2700),
        (10, nil, 15),
    ])
    func `[MQTT-3.1.2-21] a keep alive of 0 or too long is replaced`(
        wanted: UInt16,
        given: UInt16?,
        silence: Double
    ) throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(keepAlive: wanted))
        #expect(bench.sent.first?.connack?.properties.serverKeepAlive == given)
        #expect(bench.terms?.keepAliveTimeout == silence)
    }

    @Test func `3-1-1 a keep-alive of 0 is the longest allowed one`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(.v311, keepAlive: 0))
        #expect(bench.terms?.keepAliveTimeout == 2700)
    }

    @Test func `[MQTT-3.1.2-14] wills are accepted`() throws {
        for version in MQTTVersion.allCases {
            var bench = try SessionBench()
            bench.receive(
                SessionBench.connect(
                    version,
                    will: MQTTWill(topic: "gone", payload: [1], qualityOfService: .atLeastOnce)
                )
            )
            #expect(bench.sent.first?.connack?.reasonCode == .success)
        }
    }

    @Test func `[MQTT-3.2.2-12] [MQTT-3.2.2-13] a will at QoS 2, or retained, is refused`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(will: MQTTWill(topic: "a", payload: [], qualityOfService: .exactlyOnce)))
        #expect(bench.sent.first?.connack?.reasonCode == .qosNotSupported)
        bench = try SessionBench()
        bench.receive(SessionBench.connect(will: MQTTWill(topic: "a", payload: [], isRetained: true)))
        #expect(bench.sent.first?.connack?.reasonCode == .retainNotSupported)
    }

    @Test func `[MQTT-3.3.4-9] the window is the device's receive maximum, within the server's limit`() throws {
        for (maximum, window) in [(UInt16?.none, 128), (1, 1), (100, 100), (.max, 128)] {
            var bench = try SessionBench()
            bench.receive(SessionBench.connect(properties: maximum.map { [.receiveMaximum($0)] } ?? []))
            #expect(bench.terms?.window == window)
        }
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(.v311))
        #expect(bench.terms?.window == 20)
    }

    @Test func `a failed registry refuses with 0x88, in 3-1-1 with return code 3`() throws {
        var bench = try SessionBench()
        bench.isRegistryDown = true
        bench.receive(SessionBench.connect())
        #expect(bench.sent.first?.connack?.reasonCode == .serverUnavailable)
        #expect(bench.hasEnded && bench.terms == nil)
    }

    @Test func `two copies of a certificate that take over too often are refused with 0x97`() throws {
        var bench = try SessionBench()
        bench.hasTooManyTakeovers = true
        bench.receive(SessionBench.connect())
        #expect(bench.sent.first?.connack?.reasonCode == .quotaExceeded)
        #expect(bench.faults == [.tooManyTakeovers])
    }

    @Test func `[MQTT-3.1.4-6] after a refusal nothing is read`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(id: "somebody"))
        #expect(!bench.machine.canReceive)
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        #expect(bench.sent.count == 1)
    }

    @Test func `a malformed CONNECT of MQTT 5 is refused, one of 3-1-1 only closed`() throws {
        var bench = try SessionBench()
        bench.fail(.malformedPacket, refusalVersion: .v5)
        #expect(bench.sent.first?.connack?.reasonCode == .malformedPacket)
        bench = try SessionBench()
        bench.fail(.malformedPacket, refusalVersion: .v311)
        #expect(bench.sent.isEmpty && bench.hasEnded)
        bench = try SessionBench()
        bench.fail(.protocolError)
        #expect(bench.sent.isEmpty && bench.hasEnded)
    }

    @Test func `[MQTT-3.1.2-2] another version is refused with 0x84, in 3-1-1 with return code 1`() throws {
        for version in MQTTVersion.allCases {
            var bench = try SessionBench()
            bench.fail(.unsupportedProtocolVersion, refusalVersion: version)
            #expect(bench.sent.first?.connack?.reasonCode == .unsupportedProtocolVersion)
        }
    }

    // Sessions.

    @Test func `[MQTT-3.1.2-23] a session with an expiry is kept, and present at the next connection`() throws {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.disconnect()
        #expect(bench.released.count == 1)
        guard case .keep(let record) = bench.released[0].session else {
            throw MQTTError(.unspecifiedError, "not kept")
        }
        #expect(record.subscriptions == ["apps/com.example.chat/#": 1])
        #expect(record.disconnected == bench.now.milliseconds)

        var next = try SessionBench()
        next.register("com.example.chat")
        next.record.session = record
        next.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
        #expect(next.sent.first?.connack?.isSessionPresent == true)
        #expect(next.open == [AppNumber(1): 1])
        #expect(next.log == ["attach", "connack", "open"])
        #expect(next.record.session?.disconnected == nil)
    }

    @Test func `a resumed session is sent its tokens after CONNACK when their key is another, or was not noted`() throws
    {
        for (noted, isTold) in [(UInt32?.some(1), true), (2, false), (nil, true)] {
            var bench = try SessionBench()
            bench.tokenKey = 2
            bench.register("com.example.chat")
            bench.register("com.example.mail")
            bench.record.session = SessionRecord(
                subscriptions: ["apps/com.example.chat/#": 1, "apps/com.example.mail": 1],
                expiryInterval: 100,
                tokenKey: noted
            )
            bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
            #expect(bench.tokens.map(\.app) == (isTold ? [AppNumber(1)] : []))
            #expect(bench.record.session?.tokenKey == noted)
            bench.disconnect()
            guard case .keep(let record) = bench.released[0].session else { return #expect(Bool(false)) }
            #expect(record.tokenKey == 2)
        }
    }

    @Test func `an open session is sent the tokens of a new key once, and its record then has the new key`() throws {
        var bench = try SessionBench()
        bench.register("com.example.chat")
        bench.register("com.example.mail")
        bench.register("com.example.news")
        bench.record.session = SessionRecord(
            subscriptions: [
                "apps/com.example.chat/#": 1, "apps/com.example.mail": 1, "apps/com.example.news/token": 0,
            ],
            expiryInterval: 100,
            tokenKey: 1
        )
        let early = bench.machine.renewTokens(2)
        #expect(early.isEmpty, "nobody is let in yet")
        bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
        let same = bench.machine.renewTokens(1)
        #expect(same.isEmpty)
        let wanted = bench.machine.renewTokens(2)
        #expect(
            Set(wanted) == [
                AppSubscription(AppNumber(1), qualityOfService: 1), AppSubscription(AppNumber(3), qualityOfService: 0),
            ]
        )
        let again = bench.machine.renewTokens(2)
        #expect(again.isEmpty)
        // Until the connection is over and everything acknowledged, what is on record is the older key.
        #expect(bench.record.session?.tokenKey == 1)
        bench.disconnect()
        guard case .keep(let record) = bench.released[0].session else { return #expect(Bool(false)) }
        #expect(record.tokenKey == 2)
    }

    @Test func `[MQTT-4.1.0-2] a session whose expiry has passed is gone`() throws {
        var bench = try SessionBench()
        bench.register("com.example.chat")
        bench.record.session = SessionRecord(
            subscriptions: ["apps/com.example.chat": 1],
            expiryInterval: 10,
            disconnected: bench.now - .seconds(10)
        )
        bench.receive(SessionBench.connect(isClean: false))
        #expect(bench.sent.first?.connack?.isSessionPresent == false)
        #expect(bench.open.isEmpty && bench.record.session == nil)
    }

    @Test func `[MQTT-3.1.2-4] [MQTT-3.2.2-2] a clean start discards the session, and no registration`() throws {
        var bench = try SessionBench()
        bench.register("com.example.chat")
        bench.record.session = SessionRecord(subscriptions: ["apps/com.example.chat": 1], expiryInterval: 1000)
        bench.receive(SessionBench.connect(isClean: true))
        #expect(bench.sent.first?.connack?.isSessionPresent == false)
        #expect(bench.open.isEmpty && bench.record.session == nil)
        #expect(bench.registered.count == 1)
    }

    @Test func `3-1-1 a session that is not clean is kept as long as any`() throws {
        var bench = try SessionBench.connected(.v311, isClean: false)
        #expect(bench.record.session?.expiryInterval == 2_592_000)
        bench.disconnect()
        #expect(bench.released[0].session != .unchanged)
    }

    @Test func `3-1-1 [MQTT-3.1.2-6] a clean session ends with its connection`() throws {
        var bench = try SessionBench.connected(.v311, isClean: true)
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.disconnect()
        #expect(bench.released.map(\.session) == [.unchanged] && bench.record.session == nil)
    }

    @Test func `the session expiry is cut to the longest, and CONNACK says so`() throws {
        var bench = try SessionBench()
        bench.receive(SessionBench.connect(properties: [.sessionExpiryInterval(.max)]))
        #expect(bench.sent.first?.connack?.properties.sessionExpiryInterval == 2_592_000)
        bench = try SessionBench()
        bench.receive(SessionBench.connect(properties: [.sessionExpiryInterval(60)]))
        #expect(bench.sent.first?.connack?.properties.sessionExpiryInterval == nil)
    }

    @Test func `a session belongs to one environment`() throws {
        var bench = try SessionBench(environment: .sandbox)
        bench.register("com.example.chat")
        bench.record.session = SessionRecord(subscriptions: ["apps/com.example.chat": 1], expiryInterval: 1000)
        bench.receive(SessionBench.connect(isClean: false))
        #expect(bench.sent.first?.connack?.isSessionPresent == false)
    }

    @Test func `an app that was removed does not come back with a session`() throws {
        var bench = try SessionBench()
        bench.record.session = SessionRecord(subscriptions: ["apps/com.example.chat": 1], expiryInterval: 1000)
        bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(1000)]))
        #expect(bench.sent.first?.connack?.isSessionPresent == true)
        #expect(bench.open.isEmpty && bench.registered.isEmpty)
        #expect(bench.record.session?.subscriptions == [:])
    }

    @Test func `a record that cannot be stored refuses the connection`() throws {
        var bench = try SessionBench()
        bench.isHolding = true
        bench.receive(SessionBench.connect(properties: [.sessionExpiryInterval(10)]))
        bench.release()
        bench.isHolding = true
        #expect(bench.held.isEmpty)
        var other = try SessionBench()
        other.isHolding = true
        other.receive(SessionBench.connect(properties: [.sessionExpiryInterval(10)]))
        other.complete(
            .admitted(AdmittedDevice(device: SessionBench.device, fence: 1, record: DeviceRecord(), apps: []))
        )
        #expect(other.held.count == 2)
        other.complete(.failed)
        #expect(other.sent.first?.connack?.reasonCode == .serverUnavailable)
    }

    @Test func `a session that another node stored meanwhile is the one that is resumed`() throws {
        var bench = try SessionBench()
        for name in ["com.example.chat", "com.example.mail"] { bench.register(name) }
        bench.record = DeviceRecord(
            session: SessionRecord(subscriptions: ["apps/com.example.chat": 1], expiryInterval: 100),
            sequence: 5
        )
        let admission = bench.answer(.admit)
        bench.isHolding = true
        bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
        bench.complete(admission)
        #expect(bench.sent.isEmpty, "an unchanged record is confirmed too")
        bench.held = [try #require(bench.held.last)]
        bench.record.session?.subscriptions["apps/com.example.mail"] = 1
        bench.record.sequence = 6
        bench.release()
        #expect(bench.sent.first?.connack?.isSessionPresent == true)
        #expect(Set(bench.open.keys) == [AppNumber(1), AppNumber(2)])
        #expect(bench.record.session?.subscriptions.count == 2)
    }

    @Test func `a connection that is not the newest any more is refused, and leaves the session alone`() throws {
        var bench = try SessionBench()
        bench.record.sequence = 5
        let admission = bench.answer(.admit)
        bench.isHolding = true
        bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
        bench.complete(admission)
        bench.dismiss(.takenOver)
        bench.complete(.failed)
        bench.disconnect()
        #expect(bench.sent.map { $0.connack?.reasonCode } == [.serverUnavailable])
        #expect(bench.released.map(\.session) == [.unchanged])
    }

    @Test func `a device that is admitted after it has gone releases its claim`() throws {
        var bench = try SessionBench()
        bench.isHolding = true
        bench.receive(SessionBench.connect())
        bench.disconnect()
        #expect(bench.released.isEmpty)
        bench.release()
        #expect(bench.released.map(\.fence) == [42])
        #expect(bench.sent.isEmpty)
    }
}
