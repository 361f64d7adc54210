import HeraldMailbox
import HeraldModel
import HeraldWire
import Testing

@testable import HeraldCourier

/// The user property `environment`: apps of both environments on one connection.
@Suite struct SessionEnvironmentTests {
    private let chat = "com.example.chat"
    private let sandbox: MQTTProperties = [.userProperty(name: "environment", value: "sandbox")]

    private func reason(_ packet: MQTTPacket?) -> String? {
        switch packet {
        case .suback(let suback): suback.properties.reasonString
        case .unsuback(let unsuback): unsuback.properties.reasonString
        default: nil
        }
    }

    @Test(arguments: ["sandbox", "development"])
    func `an app is registered in the environment of the user property`(name: String) throws {
        var bench = try SessionBench.connected()
        let properties: MQTTProperties = [.userProperty(name: "environment", value: name)]
        bench.receive(SessionBench.subscribe("apps/\(chat)/#", properties: properties))
        bench.receive(SessionBench.subscribe("apps/com.example.mail/#"))
        #expect(Set(bench.registered.keys.map(\.name)) == ["other.com.example.chat", "com.example.mail"])
        #expect(bench.tokens.count == 2)
        #expect(bench.open.count == 2)
    }

    @Test(arguments: [["staging"], [""], ["production", "sandbox"]])
    func `an unknown environment is refused with a reason, and nothing is registered`(names: [String]) throws {
        var bench = try SessionBench.connected()
        let properties = MQTTProperties(names.map { .userProperty(name: "environment", value: $0) })
        bench.receive(SessionBench.subscribe("apps/\(chat)/#", "apps/com.example.mail", properties: properties))
        #expect(bench.sent.last?.suback == [.implementationSpecificError, .implementationSpecificError])
        #expect(reason(bench.sent.last) == EnvironmentProperty.allowed)
        bench.register(chat)
        bench.receive(SessionBench.unsubscribe("apps/\(chat)/#", properties: properties))
        #expect(bench.sent.last?.unsuback == [.implementationSpecificError])
        #expect(bench.registered.count == 1)
        bench.receive(SessionBench.publish("apps/\(chat)/settings", #"{"enabled":false}"#, properties: properties))
        #expect(bench.disabled.isEmpty && !bench.hasEnded)
    }

    @Test func `later packets are about the app that is subscribed to`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/\(chat)/#", properties: sandbox))
        let other = SessionBench.topic("other.\(chat)")
        bench.receive(SessionBench.publish("apps/\(chat)/settings", #"{"enabled":false}"#))
        #expect(bench.disabled == [other])
        let token = try #require(bench.tokens.first?.token)
        bench.receive(SessionBench.publish("apps/\(chat)/token", token.hex))
        #expect(!bench.hasEnded)
        bench.receive(SessionBench.unsubscribe("apps/\(chat)/#"))
        #expect(bench.sent.last?.unsuback == [.success])
        #expect(bench.registered.isEmpty)
    }

    @Test func `after a clean start the user property names the registration`() throws {
        var bench = try SessionBench.connected()
        bench.register(chat)
        bench.register("other.\(chat)")
        bench.receive(SessionBench.publish("apps/\(chat)/settings", #"{"enabled":false}"#, properties: sandbox))
        #expect(bench.disabled.map(\.name) == ["other.\(chat)"])
        bench.receive(SessionBench.unsubscribe("apps/\(chat)/#", properties: sandbox))
        #expect(bench.registered.keys.map(\.name) == [chat])
    }

    @Test func `a token is presented in the environment of its app`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/\(chat)/#", properties: sandbox))
        let token = try #require(bench.tokens.first?.token)
        var again = try SessionBench.connected()
        (again.numbers, again.registered) = (bench.numbers, bench.registered)
        var properties = sandbox
        properties.append(.userProperty(name: "token", value: token.hex))
        again.receive(SessionBench.subscribe("apps/\(chat)/#", properties: properties))
        #expect(again.sent.last?.suback == [.grantedQoS1])
        #expect(!again.hasEnded)
    }

    @Test func `a topic moves to the other environment with all of its filters`() throws {
        var bench = try SessionBench.connected()
        bench.receive(SessionBench.subscribe("apps/\(chat)"))
        let first = try #require(bench.number(chat))
        bench.forgetSent()
        bench.receive(SessionBench.subscribe("apps/\(chat)/token", properties: sandbox))
        let second = try #require(bench.number("other.\(chat)"))
        #expect(bench.log == ["suback", "remove", "open", "token"])
        #expect(bench.open == [second: 1])
        // It is still registered: no packet has removed it.
        #expect(bench.registered.count == 2)
        bench.receive(SessionBench.unsubscribe("apps/\(chat)", "apps/\(chat)/token"))
        #expect(bench.sent.last?.unsuback == [.success, .success])
        #expect(bench.registered.keys.map(\.name) == [chat])
        #expect(bench.open.isEmpty)
        #expect(first != second)
    }

    @Test func `a resumed session knows the environments`() throws {
        let lasting: MQTTProperties = [.sessionExpiryInterval(100)]
        var bench = try SessionBench.connected(isClean: false, properties: lasting)
        bench.receive(SessionBench.subscribe("apps/\(chat)/#", properties: sandbox))
        bench.receive(SessionBench.subscribe("apps/com.example.mail/#"))
        #expect(bench.record.session?.environments == [chat: .sandbox])
        bench.disconnect()
        var next = try SessionBench()
        (next.record, next.numbers, next.registered) = (bench.record, bench.numbers, bench.registered)
        next.receive(SessionBench.connect(isClean: false, properties: lasting))
        #expect(next.open.keys.count == 2)
        #expect(next.open[try #require(bench.number("other.\(chat)"))] == 1)
        #expect(next.record.session?.environments == [chat: .sandbox])
        next.receive(SessionBench.unsubscribe("apps/\(chat)/#"))
        #expect(next.record.session?.environments == nil)
        #expect(next.registered.keys.map(\.name) == ["com.example.mail"])
    }
}
