import Hummingbird
import Testing

@testable import HeraldWeb

struct HostCheckTests {
    private func answers(_ authority: String, at host: String = "127.0.0.1", names: [String] = []) -> Bool {
        HostCheck<BasicRequestContext>(host: host, names: names, answersTo: "").isOurs(authority)
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:2190", "a.localhost", "127.0.0.1:2190", "127.9.9.9", "[::1]:2190", "[::1]",
    ])
    func `loopback names and addresses are always allowed`(authority: String) {
        #expect(answers(authority) && answers(authority, at: "192.0.2.1"))
    }

    @Test(arguments: [
        "example.com", "localhost.example.com", "192.0.2.1", "", "localhost:x", "[::1", "127.0.0.1.example.com",
    ])
    func `anything else is refused`(authority: String) {
        #expect(!answers(authority))
    }

    @Test func `the configured host and names are allowed`() {
        #expect(answers("console.example.com:2190", at: "console.example.com"))
        #expect(answers("Push.Example.com", names: ["push.example.com"]))
        #expect(answers("192.0.2.1:2190", at: "0.0.0.0") && answers("[2001:db8::1]", at: "::"))
        #expect(!answers("example.com", at: "0.0.0.0"))
    }
}
