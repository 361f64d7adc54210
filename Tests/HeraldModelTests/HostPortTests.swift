import HeraldModel
import Testing

/// Hosts and ports are read and written as RFC 3986 has them.
struct HostPortTests {
    @Test(arguments: [
        ("push.example.com:443", "push.example.com", 443), ("push.example.com", "push.example.com", 2197),
        ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:65535", "::1", 65_535), ("[::1]", "::1", 2197),
        ("[fe80::1%eth0]:2197", "fe80::1%eth0", 2197),
    ])
    func `addresses are read`(_ text: String, _ host: String, _ port: Int) throws {
        let read = try #require(HostPort(text, defaultPort: 2197))
        #expect(read == HostPort(host: host, port: port))
        #expect(HostPort(read.description) == read)
    }

    @Test(arguments: [
        "", ":443", "::1", "::1:443", "[::1", "[::1]443", "[::1]:", "[localhost]:1", "[]:1", "a:0", "a:65536", "a:+1",
        "a:1:2",
        "https://a:1", "user@a:1", "a b:1", "a\r\nb:1", "a:١", "[::1%]x:1",
    ])
    func `other texts are not`(_ text: String) {
        #expect(HostPort(text, defaultPort: 2197) == nil)
    }

    @Test(arguments: [
        ("[::1]", "::1"), ("[fe80::1%eth0]", "fe80::1%eth0"), ("::1", "::1"), ("localhost", "localhost"),
        ("[localhost]", "[localhost]"), ("[::1]:1", "[::1]:1"), ("]", "]"), ("", ""),
    ])
    func `brackets of an address are removed`(_ text: String, _ host: String) {
        #expect(HostPort.unbracketed(text) == host)
    }

    @Test func `the hint names brackets`() {
        #expect(HostPort.example(insteadOf: "::1:2197", port: 2197) == "[::1]:2197, with brackets")
        #expect(HostPort.example(insteadOf: "localhost:x", port: 2197) == "localhost:2197")
    }

    /// Neither the scheme's own port nor the zone of an address means anything to the server.
    @Test(arguments: [
        ("a", 443, "a"), ("a", 2197, "a:2197"), ("::1", 443, "[::1]"), ("fe80::1%eth0", 2197, "[fe80::1]:2197"),
    ])
    func `the authority is that of HTTP`(_ host: String, _ port: Int, _ text: String) {
        #expect(HostPort(host: host, port: port).authority(schemePort: 443) == text)
    }

    @Test(arguments: [
        ("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("0:0:0:0:0:0:0:0", "::1"), ("127.0.0.2", "127.0.0.2"), ("::1", "::1"),
        ("a", "a"), ("localhost", "localhost"),
    ])
    func `all addresses are reached by loopback`(_ host: String, _ reachable: String) {
        #expect(NumericAddress.reachable(host) == reachable)
    }

    @Test func `addresses are told from names`() {
        for text in ["127.8.9.1", "::1", "0:0::1", "::1%lo"] { #expect(NumericAddress(text)?.isLoopback == true) }
        for text in ["10.0.0.1", "fe80::1%eth0", "::"] { #expect(NumericAddress(text)?.isLoopback == false) }
        for text in ["localhost", "1.2.3", "1.2.3.4%eth0", "[::1]", ""] { #expect(NumericAddress(text) == nil) }
    }
}
