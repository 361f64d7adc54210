import HeraldMailbox
import HeraldModel
import HeraldWire
import Testing

@testable import HeraldCourier

/// SUBSCRIBE and UNSUBSCRIBE: registrations come and go with them.
struct SessionSubscribeTests {
    @Test func `an app that is one too many is refused with 0x97, and the others are not`() throws {
        var bench = try SessionBench.connected()
        bench.tooMany = [SessionBench.topic("com.example.mail")]
        bench.receive(SessionBench.subscribe("apps/com.example.mail", "apps/com.example.chat"))
        guard case .suback(let suback)? = bench.sent.last(where: { if case .suback = $0 { true } else { false } })
        else {
            return #expect(Bool(false), "no SUBACK")
        }
        #expect(suback.reasonCodes == [.quotaExceeded, .grantedQoS1])
    }

    @Test(arguments: ["apps/com.example.chat/#", "apps/com.example.chat", "apps/com.example.chat/token"])
    func `each of the three filters makes the registration`(filter: String) throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe(filter))
        #expect(bench.sent.map(\.suback) == [[.grantedQoS1]])
        #expect(bench.registered[SessionBench.topic("com.example.chat")] == 1)
    }

    @Test func `[MQTT-3.8.4-1] the token, and what waits, come after the SUBACK`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        #expect(bench.log == ["suback", "token", "open"])
        #expect(bench.tokens.map(\.token) == [SessionBench.token(AppNumber(1))])
    }

    @Test func `notifications only, token only`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        #expect(bench.log == ["suback", "open"])
        bench.forgetSent()
        bench.receive(SessionBench.subscribe("apps/com.example.mail/token"))
        #expect(bench.log == ["suback", "token"])
    }

    @Test func `[MQTT-3.8.4-8] [MQTT-3.2.2-10] a subscription at QoS 2 is granted 1`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", qualityOfService: .exactlyOnce))
        #expect(bench.sent.map(\.suback) == [[.grantedQoS1]])
        bench.receive(SessionBench.subscribe("apps/com.example.mail/#", qualityOfService: .atMostOnce))
        #expect(bench.sent.last?.suback == [.grantedQoS0])
        #expect(bench.open == [AppNumber(1): 1, AppNumber(2): 0])
    }

    @Test func `[MQTT-3.3.4-2] overlapping filters give one copy at the highest QoS`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", qualityOfService: .atMostOnce))
        bench.forgetSent()
        bench.receive(SessionBench.subscribe("apps/com.example.chat", "apps/com.example.chat/token"))
        #expect(bench.open == [AppNumber(1): 1])
        #expect(bench.tokens.map(\.qualityOfService) == [1])
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat"))
        #expect(bench.open == [AppNumber(1): 0])
    }

    @Test func `[MQTT-3.8.4-3] the same filter again replaces the subscription, and the token comes again`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", qualityOfService: .atMostOnce))
        #expect(bench.sent.compactMap(\.suback) == [[.grantedQoS1], [.grantedQoS0]])
        #expect(bench.open == [AppNumber(1): 0])
        #expect(bench.tokens.count == 2)
    }

    @Test func `[MQTT-3.8.4-6] [MQTT-3.9.3-1] every filter has its code, in order, and a refused one ends nothing`()
        throws
    {
        var bench = try SessionBench.connected()
        bench.receive(
            SessionBench.subscribe(
                "apps/com.example.chat",
                "#",
                "apps/+/token",
                "apps/#/x",
                "$share/g/apps/com.example.chat",
                "device/power",
                "apps/com.example.chat/settings",
                "channels/com.example.chat/abc=",
                "$SYS/broker"
            )
        )
        #expect(
            bench.sent.map(\.suback) == [
                [
                    .grantedQoS1, .notAuthorized, .notAuthorized, .topicFilterInvalid, .sharedSubscriptionsNotSupported,
                    .notAuthorized,
                    .notAuthorized, .notAuthorized, .notAuthorized,
                ]
            ]
        )
        #expect(!bench.hasEnded)
    }

    @Test func `a subscription identifier is refused with 0xA1`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat", properties: [.subscriptionIdentifier(1)]))
        #expect(bench.sent.map(\.suback) == [[.subscriptionIdentifiersNotSupported]])
        #expect(bench.registered.isEmpty)
    }

    @Test func `a registration that fails is refused with 0x80`() throws {
        var bench = try SessionBench.connected()
        bench.isRegistryDown = true
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        #expect(bench.sent.map(\.suback) == [[.unspecifiedError]])
        #expect(bench.open.isEmpty)
    }

    @Test func `a session has a limit of subscriptions`() throws {
        var configuration = CourierConfiguration()
        configuration.subscriptionsPerSession = 2
        var bench = try SessionBench(configuration: configuration)
        bench.channels = ["channels/a/x"]
        bench.receive(SessionBench.connect())
        bench.receive(SessionBench.subscribe("apps/a", "apps/a/token", "apps/b", "apps/c", "channels/a/x"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1, .grantedQoS1, .quotaExceeded, .quotaExceeded])
        #expect(bench.registered.count == 2)
    }

    @Test func `the record of the session is stored before SUBACK`() throws {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.isHolding = true
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        #expect(
            bench.held == [.register([App(topic: SessionBench.topic("com.example.chat"), environment: .production)])]
        )
        bench.complete(
            .registered([
                RegisteredApp(
                    topic: SessionBench.topic("com.example.chat"),
                    number: AppNumber(9),
                    token: SessionBench.token(AppNumber(9))
                )
            ])
        )
        #expect(bench.sent.isEmpty)
        bench.complete(.done)
        #expect(bench.log == ["suback", "open"])
    }

    @Test func `a record that cannot be stored takes the subscription back`() throws {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.isHolding = true
        bench.receive(SessionBench.subscribe("apps/com.example.chat", "#"))
        let app = RegisteredApp(
            topic: SessionBench.topic("com.example.chat"),
            number: AppNumber(9),
            token: SessionBench.token(AppNumber(9))
        )
        bench.complete(.registered([app]))
        bench.complete(.failed)
        #expect(bench.sent.map(\.suback) == [[.unspecifiedError, .notAuthorized]])
        #expect(bench.open.isEmpty)
    }

    @Test func `requests are carried out one after the other and answered in order`() throws {
        var bench = try SessionBench.connected()
        bench.isHolding = true
        bench.receive(
            SessionBench.subscribe("apps/com.example.chat", id: 1),
            SessionBench.publish("apps/com.example.chat/settings", #"{"enabled":false}"#, id: 2),
            SessionBench.publish("elsewhere", "", id: 3),
            SessionBench.unsubscribe("apps/com.example.chat", id: 4)
        )
        #expect(bench.held.count == 1)
        #expect(bench.sent.isEmpty)
        bench.release()
        #expect(bench.sent.map(\.kind) == [.suback, .puback, .puback, .unsuback])
    }

    @Test func `[MQTT-3.12.4-1] PINGREQ is answered, after what was asked before it`() throws {
        var bench = try SessionBench.connected()
        bench.receive(.pingreq)
        #expect(bench.sent == [.pingresp])
        bench.isHolding = true
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#, id: nil), .pingreq)
        #expect(bench.sent.count == 1)
        bench.release()
        #expect(bench.sent == [.pingresp, .pingresp])
    }

    @Test func `a device with too many requests under way is not read from`() throws {
        var configuration = CourierConfiguration()
        configuration.waitingOperations = 2
        var bench = try SessionBench(configuration: configuration)
        bench.receive(SessionBench.connect())
        bench.isHolding = true
        for id in 1...5 { bench.receive(SessionBench.subscribe("apps/a", id: UInt16(id))) }
        #expect(!bench.machine.canReceive)
        bench.release()
        #expect(bench.machine.canReceive)
        #expect(bench.sent.compactMap(\.suback).count == 3)
    }

    // UNSUBSCRIBE.

    @Test func `with the last of its filters the app is removed`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", "apps/com.example.chat/token"))
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/#"))
        #expect(bench.sent.map(\.unsuback) == [[.success]])
        #expect(bench.registered.count == 1)
        #expect(bench.log == ["close", "unsuback"])
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/token"))
        #expect(bench.sent.map(\.unsuback) == [[.success]])
        #expect(bench.registered.isEmpty)
        #expect(bench.log == ["forget", "unsuback"])
    }

    @Test func `[MQTT-3.10.4-1] UNSUBSCRIBE of what a clean start lost removes the app, with 0x00`() throws {
        var bench = try SessionBench.connected()
        bench.register("com.example.chat")
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/#"))
        #expect(bench.sent.map(\.unsuback) == [[.success]])
        #expect(bench.registered.isEmpty)
    }

    @Test func `[MQTT-3.11.3-1] where nothing was registered it says 0x11`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/#", "#", "channels/a/b", "a#"))
        #expect(
            bench.sent.map(\.unsuback) == [
                [.noSubscriptionExisted, .noSubscriptionExisted, .noSubscriptionExisted, .topicFilterInvalid]
            ]
        )
    }

    @Test func `a filter that was not subscribed removes nothing while another one stands`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat"))
        #expect(bench.sent.last?.unsuback == [.noSubscriptionExisted])
        #expect(bench.registered.count == 1)
    }

    @Test func `several filters of one app in one packet`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.receive(
            SessionBench.unsubscribe("apps/com.example.chat/token", "apps/com.example.chat", "apps/com.example.chat/#")
        )
        #expect(bench.sent.last?.unsuback?[1] == .success)
        #expect(bench.sent.last?.unsuback?[2] == .noSubscriptionExisted)
        #expect(bench.registered.isEmpty)
    }

    @Test func `a removal that fails leaves everything as it was, and 3-1-1 is closed`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.isRegistryDown = true
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat"))
        #expect(bench.sent.last?.unsuback == [.unspecifiedError])
        #expect(bench.open.count == 1)

        bench = try SessionBench.connected(.v311)
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.isRegistryDown = true
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat"))
        #expect(bench.hasEnded && bench.sent.count == 1)
    }

    @Test func `the app is removed and the record stored before UNSUBACK`() throws {
        var bench = try SessionBench.connected(isClean: false, properties: [.sessionExpiryInterval(100)])
        bench.receive(SessionBench.subscribe("apps/com.example.chat"))
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat"))
        #expect(bench.requests.count == 2)
        #expect(bench.record.session?.subscriptions == [:])
        #expect(bench.log == ["forget", "unsuback"])
    }
}
