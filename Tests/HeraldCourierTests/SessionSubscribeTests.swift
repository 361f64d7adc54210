import Foundation
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
        #expect(suback.properties.reasonString == RegistrationRefusal.tooManyNewNames.description)
    }

    @Test(arguments: ["apps/com.example.chat/#", "apps/com.example.chat", "apps/com.example.chat/token"])
    func `each of the three filters makes the registration`(filter: String) throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe(filter))
        #expect(bench.sent.map(\.suback) == [[.grantedQoS1]])
        #expect(bench.registered[SessionBench.topic("com.example.chat")] == 1)
    }

    @Test func `[MQTT-3.8.4-1] the token and waiting notifications come after the SUBACK`() throws {
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

    @Test
    func
        `[MQTT-3.8.4-6] [MQTT-3.9.3-1] every filter has its code, in order, and a refused filter does not end the connection`()
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

    @Test func `a filter outside the device contract is explained in SUBACK and in the log`() throws {
        for (version, properties, explains) in [
            (MQTTVersion.v5, MQTTProperties(), true), (.v5, [.requestProblemInformation(0)], false), (.v311, [], false),
        ] {
            var bench = try SessionBench.connected(version, properties: properties)
            bench.receive(SessionBench.subscribe("apps/com.example.chat", "#", "apps/com example/#"))
            guard case .suback(let suback)? = bench.sent.first else { return #expect(Bool(false), "no SUBACK") }
            #expect(suback.reasonCodes == [.grantedQoS1, .notAuthorized, .notAuthorized])
            let reason = "a device may subscribe to \(RefusedTopic.allowedFilters)"
            #expect(suback.properties.reasonString == (explains ? reason : nil))
            #expect(bench.refusedTopics == [.subscribe("#")])
        }
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        #expect(bench.refusedTopics.isEmpty)
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
        let channel = "channels/a/AAECAwQFBgcICQoLDA0O-w=="
        bench.channels = [channel]
        bench.receive(SessionBench.connect())
        bench.receive(SessionBench.subscribe("apps/a", "apps/a/token", "apps/b", "apps/c"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1, .grantedQoS1, .quotaExceeded])
        bench.receive(SessionBench.subscribe(channel))
        #expect(bench.sent.last?.suback == [.quotaExceeded])
        #expect(bench.registered.count == 2)
    }

    @Test func `a packet may repeat what the session has, and new ones share the rest of the limit`() throws {
        var configuration = CourierConfiguration()
        configuration.subscriptionsPerSession = 3
        var bench = try SessionBench(configuration: configuration)
        let channel = "channels/a/AAECAwQFBgcICQoLDA0O-w=="
        bench.channels = [channel]
        bench.receive(SessionBench.connect())
        bench.receive(SessionBench.subscribe("apps/a", "apps/b"))
        bench.receive(SessionBench.subscribe("apps/a", "apps/b", channel, "apps/c"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1, .quotaExceeded, .grantedQoS1])
        bench.receive(SessionBench.subscribe("apps/c", "apps/d"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .quotaExceeded])
    }

    @Test(arguments: [MQTTVersion.v5, .v311])
    func `a packet with more than twice as many filters as a session may have is refused before any work`(
        version: MQTTVersion
    ) throws {
        var configuration = CourierConfiguration()
        configuration.subscriptionsPerSession = 2
        var bench = try SessionBench(configuration: configuration)
        bench.receive(SessionBench.connect(version))
        bench.forgetSent()
        bench.receive(SessionBench.subscribe("apps/a", "apps/a/token", "apps/b", "#", "apps/a"))
        #expect(bench.sent.last?.suback == Array(repeating: .quotaExceeded, count: 5))
        #expect(bench.requests.isEmpty && bench.refusedTopics.isEmpty)
        bench.receive(SessionBench.subscribe("apps/a", "apps/a/token", "apps/b", "#"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1, .grantedQoS1, .notAuthorized])
        bench.forgetSent()
        bench.receive(SessionBench.unsubscribe("apps/a", "apps/a/token", "apps/b", "#", "apps/a"))
        if version == .v5 {
            // UNSUBACK has no code for a quota.
            #expect(bench.sent.last?.unsuback == Array(repeating: .implementationSpecificError, count: 5))
        }
        #expect(bench.requests.isEmpty && bench.registered.count == 2)
        #expect(bench.hasEnded == (version == .v311))
    }

    /// The processor time of this thread, in nanoseconds.
    private static func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// The least work, of some tries, for the packets of a session with so many subscriptions.
    private static func work(_ count: Int) throws -> Int {
        var configuration = CourierConfiguration()
        configuration.subscriptionsPerSession = count
        let apps = (1...2 * count).map { "apps/com.example.app\($0)" }
        let tokens = apps.prefix(count).map { $0 + "/token" }
        var least = Int.max
        for _ in 1...5 {
            var bench = try SessionBench(configuration: configuration)
            bench.receive(SessionBench.connect(isClean: false, properties: [.sessionExpiryInterval(100)]))
            let start = processorTime()
            bench.receive(
                SessionBench.subscribe(to: apps),
                SessionBench.subscribe(to: tokens + apps.prefix(count)),
                SessionBench.unsubscribe(from: Array(tokens)),
                SessionBench.unsubscribe(from: apps)
            )
            least = min(least, processorTime() - start)
            #expect(bench.sent.compactMap(\.suback).first?.count { $0 == .grantedQoS1 } == count)
            #expect(bench.registered.isEmpty)
        }
        return least
    }

    @Test func `the work for a packet grows with its filters, and not with their square`() throws {
        // Four times as many filters: some 4 times the work, where each is compared with each, some 16 times.
        #expect(try Double(Self.work(800)) / Double(Self.work(200)) < 8)
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

    @Test func `a record that cannot be stored undoes the subscription`() throws {
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

    @Test func `[MQTT-3.12.4-1] PINGREQ is answered after earlier requests`() throws {
        var bench = try SessionBench.connected()
        bench.receive(.pingreq)
        #expect(bench.sent == [.pingresp])
        bench.isHolding = true
        bench.receive(SessionBench.publish("device/power", #"{"saving":true}"#, id: nil), .pingreq)
        #expect(bench.sent.count == 1)
        bench.release()
        #expect(bench.sent == [.pingresp, .pingresp])
    }

    @Test func `no packet is read from a device with too many requests under way`() throws {
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
        #expect(bench.log == ["remove", "unsuback"])
    }

    @Test func `[MQTT-3.10.4-1] UNSUBSCRIBE of a subscription that a clean start lost removes the app, with 0x00`()
        throws
    {
        var bench = try SessionBench.connected()
        bench.register("com.example.chat")
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/#"))
        #expect(bench.sent.map(\.unsuback) == [[.success]])
        #expect(bench.registered.isEmpty)
    }

    @Test func `[MQTT-3.11.3-1] UNSUBSCRIBE of an unknown app is answered with 0x11`() throws {
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
        #expect(bench.log == ["remove", "unsuback"])
    }
}
