import HeraldMailbox
import HeraldModel
import HeraldWire
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HeraldCourier

@Suite struct TokenPresentationTests {
    private static var required: CourierConfiguration {
        var configuration = CourierConfiguration()
        configuration.tokenGrace = .seconds(10)
        return configuration
    }

    private let chat = SessionBench.topic("com.example.chat")
    private let mail = SessionBench.topic("com.example.mail")

    /// A connection on a service that requires tokens, with two apps that are registered.
    private func connected(
        _ version: MQTTVersion = .v5,
        isClean: Bool = true,
        properties: MQTTProperties = []
    ) throws -> SessionBench {
        var bench = try SessionBench.connected(
            version,
            isClean: isClean,
            properties: properties,
            configuration: Self.required
        )
        bench.register(chat.name)
        bench.register(mail.name)
        return bench
    }

    private func token(_ topic: Topic, _ bench: SessionBench) throws -> String {
        SessionBench.token(try #require(bench.number(topic.name))).hex
    }

    private func reason(_ bench: SessionBench) -> String? {
        guard case .suback(let suback)? = bench.sent.last else { return nil }
        return suback.properties.reasonString
    }

    @Test func `without the setting nothing is withheld and nothing said`() throws {
        var bench = try SessionBench.connected()
        #expect(bench.terms?.tokenGrace == nil)
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        #expect(reason(bench) == nil)
        bench.endTokenGrace()
        #expect(bench.open.count == 1 && bench.missingTokens.isEmpty)
    }

    @Test func `an app whose token is missing at the end of the grace is closed until it is presented`() throws {
        var bench = try connected()
        #expect(bench.terms?.tokenGrace == .seconds(10))
        let presented: MQTTProperties = [.userProperty(name: "token", value: try token(mail, bench))]
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        #expect(reason(bench) == MQTTSession.tokenDemand)
        bench.receive(SessionBench.subscribe("apps/com.example.mail/#", id: 2, properties: presented))
        #expect(reason(bench) == nil)
        #expect(bench.open.count == 2)
        bench.endTokenGrace()
        let (chatNumber, mailNumber) = (bench.number(chat.name), bench.number(mail.name))
        #expect(Set(bench.open.keys) == Set([mailNumber].compactMap(\.self)))
        #expect(bench.missingTokens == [1])
        bench.receive(SessionBench.publish("apps/com.example.chat/token", try token(chat, bench)))
        #expect(Set(bench.open.keys) == Set([chatNumber, mailNumber].compactMap(\.self)))
    }

    @Test func `after the grace an app comes with its token, whichever packet presents it`() throws {
        var bench = try connected()
        bench.endTokenGrace()
        #expect(bench.missingTokens.isEmpty, "no app is subscribed to")
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", "apps/com.example.mail/#"))
        #expect(bench.sent.last?.suback == [.grantedQoS1, .grantedQoS1])
        #expect(reason(bench) == MQTTSession.tokenDemand)
        #expect(bench.open.isEmpty && bench.tokens.count == 2)
        // A later SUBSCRIBE may present the token of another app.
        let presented: MQTTProperties = [.userProperty(name: "token", value: try token(mail, bench))]
        bench.receive(SessionBench.subscribe("apps/com.example.chat", id: 2, properties: presented))
        #expect(Array(bench.open.keys) == [bench.number(mail.name)].compactMap(\.self))
        bench.receive(SessionBench.publish("apps/com.example.chat/token", try token(chat, bench)))
        #expect(bench.open.count == 2)
        #expect(bench.missingTokens == [2], "reported once")
    }

    @Test func `an outdated token of the other registration does not count`() throws {
        var bench = try connected()
        bench.endTokenGrace()
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        let number = try #require(bench.number(chat.name))
        let old = SessionBench.token(number, generation: 0).hex
        bench.receive(SessionBench.publish("apps/com.example.chat/token", old))
        #expect(bench.open.isEmpty)
        // It is told the one in force, which it presents.
        let current = try #require(bench.tokens.last?.token.hex)
        bench.receive(SessionBench.publish("apps/com.example.chat/token", current, id: 4))
        #expect(Array(bench.open.keys) == [number])
    }

    @Test func `the token of a removed app does not stand for its next registration`() throws {
        var bench = try connected()
        let presented: MQTTProperties = [.userProperty(name: "token", value: try token(chat, bench))]
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", properties: presented))
        bench.endTokenGrace()
        #expect(bench.open.count == 1)
        bench.receive(SessionBench.unsubscribe("apps/com.example.chat/#"))
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#", id: 3))
        #expect(bench.open.isEmpty)
    }

    @Test(arguments: [MQTTVersion.v311, .v5])
    func `a resumed session has the grace, too`(version: MQTTVersion) throws {
        let properties: MQTTProperties = version == .v5 ? [.sessionExpiryInterval(3600)] : []
        var bench = try connected(version, isClean: false, properties: properties)
        bench.receive(SessionBench.subscribe("apps/com.example.chat/#"))
        bench.disconnect()
        var next = try SessionBench(configuration: Self.required)
        next.record = bench.record
        next.registered = bench.registered
        next.numbers = bench.numbers
        next.receive(SessionBench.connect(version, isClean: false, properties: properties))
        #expect(next.terms?.isResumed == true && next.open.count == 1)
        next.endTokenGrace()
        #expect(next.open.isEmpty && next.missingTokens == [1])
        next.receive(SessionBench.publish("apps/com.example.chat/token", try token(chat, next)))
        #expect(next.open.count == 1)
    }

    @Test func `the grace ends by the clock of the connection, before the keep-alive does`() async throws {
        let bench = try await ConnectionBench(configuration: Self.required)
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe([.receiveMaximum(5)])
            await bench.channel.testingEventLoop.run()
            let app = try #require(bench.services.state.withLock { $0.open.keys.first })
            await bench.channel.testingEventLoop.advanceTime(by: .seconds(9))
            #expect(bench.services.state.withLock { $0.open.count } == 1)
            await bench.channel.testingEventLoop.advanceTime(by: .seconds(2))
            #expect(bench.services.state.withLock { $0.open.isEmpty })
            let token = SessionBench.token(app).hex
            try await bench.send(SessionBench.publish("apps/com.example.chat/token", token))
            #expect(try await bench.next().puback == .success)
            #expect(bench.services.state.withLock { Array($0.open.keys) } == [app])
            #expect(bench.channel.isActive)
        }
    }
}

@Suite struct DeviceTopicsTests {
    @Test func `a topic that nobody knows is refused with 0x87, unless it is registered`() async throws {
        let services = FakeServices()
        var configuration = CourierConfiguration()
        configuration.deviceTopics = .known
        let bench = try await ConnectionBench(services: services, configuration: configuration)
        try await ConnectionBench.run(bench.courier) {
            try await bench.connectAndSubscribe()
            let (chat, other) = (SessionBench.topic("com.example.chat"), SessionBench.topic("com.example.other"))
            services.state.withLock { $0.unknownTopics = [chat, other] }
            try await bench.send(SessionBench.subscribe("apps/com.example.chat/#", "apps/com.example.other", id: 2))
            guard case .suback(let suback) = try await bench.next() else {
                Issue.record("no SUBACK")
                return
            }
            #expect(suback.reasonCodes == [.grantedQoS1, .notAuthorized])
            #expect(suback.properties.reasonString == RegistrationRefusal.unknownTopic.description)
            bench.courier.limits.replace(CourierConfiguration())
            try await bench.send(SessionBench.subscribe("apps/com.example.other", id: 3))
            while true {
                // The token of the chat app comes first.
                guard let codes = try await bench.next().suback else { continue }
                #expect(codes == [.grantedQoS1])
                return
            }
        }
    }
}
