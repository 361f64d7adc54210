import HeraldListener
import HeraldModel
import HeraldTestSupport
import NIOCore
import Testing

@testable import HeraldActivation

struct CodeThrottleTests {
    private let clock = ManualClock()
    private var configuration = ActivationConfiguration(host: "127.0.0.1", port: 0)

    private func network(_ address: String) throws -> ClientNetwork {
        ClientNetwork(try SocketAddress(ipAddress: address, port: 1))
    }

    private func wait(_ throttle: inout CodeThrottle, _ network: ClientNetwork) -> Duration? {
        throttle.wait(network, at: clock.now())
    }

    @Test func `a network may send five wrong codes, then one each interval`() throws {
        var throttle = CodeThrottle(configuration)
        let here = try network("192.0.2.1")
        for _ in 0..<5 {
            #expect(wait(&throttle, here) == nil)
            let isWorthLine = throttle.wasWrong(here, at: clock.now())
            #expect(isWorthLine)
        }
        #expect(wait(&throttle, here) == .seconds(12))
        #expect(wait(&throttle, try network("192.0.2.2")) == nil)
        clock.advance(by: .seconds(12))
        #expect(wait(&throttle, here) == nil)
        throttle.wasWrong(here, at: clock.now())
        #expect(wait(&throttle, here) != nil)
        clock.advance(by: .seconds(3600))
        #expect(wait(&throttle, here) == nil)
    }

    @Test func `past the common limit only networks without a wrong code may try`() throws {
        var configuration = configuration
        configuration.wrongCodesInAll = 10
        configuration.wrongCodeIntervalInAll = .seconds(1)
        var throttle = CodeThrottle(configuration)
        var lines = 0
        for last in 1...20 where throttle.wasWrong(try network("192.0.2.\(last)"), at: clock.now()) { lines += 1 }
        #expect(lines == 10)
        #expect(wait(&throttle, try network("192.0.2.1")) == .seconds(1))
        #expect(wait(&throttle, try network("198.51.100.1")) == nil)
        clock.advance(by: .seconds(1))
        #expect(wait(&throttle, try network("192.0.2.1")) == nil)
    }

    @Test func `wrong codes past the limit do not lift it`() throws {
        var throttle = CodeThrottle(configuration)
        let here = try network("192.0.2.1")
        for _ in 0..<20 { throttle.wasWrong(here, at: clock.now()) }
        #expect(wait(&throttle, here) == .seconds(12))
    }

    @Test func `a full table admits no new network in a flood`() throws {
        var configuration = configuration
        configuration.remembered = 8
        configuration.wrongCodesInAll = 8
        var throttle = CodeThrottle(configuration)
        for last in 1...100 { throttle.wasWrong(try network("192.0.2.\(last)"), at: clock.now()) }
        #expect(wait(&throttle, try network("198.51.100.1")) != nil)
        clock.advance(by: .seconds(60))
        #expect(wait(&throttle, try network("198.51.100.1")) == nil)
    }

    @Test func `an IPv6 network of 64 bits is one, and a mapped IPv4 address is that address`() throws {
        #expect(try network("2001:db8::1") == network("2001:db8::ffff:2"))
        #expect(try network("2001:db8::1") != network("2001:db8:0:1::1"))
        #expect(try network("192.0.2.1") == network("::ffff:192.0.2.1"))
        #expect(try network("192.0.2.1") != network("192.0.2.2"))
        #expect(ClientNetwork(nil) == ClientNetwork(nil))
    }

    @Test func `a clock that is set back resets the limits`() throws {
        var throttle = CodeThrottle(configuration)
        let here = try network("192.0.2.1")
        for _ in 0..<5 { throttle.wasWrong(here, at: clock.now()) }
        clock.advance(by: .seconds(-86_400))
        #expect(wait(&throttle, here) == nil)
    }

    @Test(arguments: [
        ("Basic OmNvZGU=", "code"), ("basic bmFtZTpjb2RlOjI=", "code:2"), ("Basic   Og==", ""), ("Basic bmFtZQ==", nil),
        ("Bearer OmNvZGU=", nil), ("Basic", nil), ("Basic !!", nil), ("Basic Ov8=", nil), ("", nil),
    ])
    func `the password of basic authentication is read, whatever the name`(_ field: String, _ password: String?) {
        #expect(ActivationRoutes.password(field) == password)
        #expect(ActivationRoutes.password("Basic " + String(repeating: "A", count: 4000)) == nil)
    }
}
