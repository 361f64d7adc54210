import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HeraldWeb

struct RequestDeadlineTests {
    private let channel = EmbeddedChannel()
    private let head = HTTPServerRequestPart.head(HTTPRequestHead(version: .http1_1, method: .POST, uri: "/"))

    init() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(RequestDeadline(header: .seconds(30), body: .seconds(20)))
    }

    private func pass(_ seconds: Int64) -> Bool {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
        return channel.isActive
    }

    private func answer() throws {
        try channel.writeOutbound(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }

    @Test func `a header has its time, from the connection and from the last answer on`() throws {
        #expect(pass(29))
        try channel.writeInbound(head)
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        try answer()
        #expect(pass(29))
        #expect(!pass(1))
    }

    @Test func `a body has its time, whatever comes of it meanwhile`() throws {
        try channel.writeInbound(head)
        for _ in 0..<19 {
            #expect(pass(1))
            try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "x")))
        }
        #expect(!pass(1))
    }

    @Test func `an early answer does not prolong its request`() throws {
        try channel.writeInbound(head)
        try answer()
        #expect(pass(19))
        #expect(!pass(1))
    }

    @Test func `an answer may take as long as it needs`() throws {
        try channel.writeInbound(head)
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(pass(3600))
    }

    @Test func `requests that wait for their answers are not slow, however many there are`() throws {
        for _ in 0..<2 {
            try channel.writeInbound(head)
            try channel.writeInbound(HTTPServerRequestPart.end(nil))
        }
        #expect(pass(3600))
        try answer()
        #expect(pass(3600), "the second still waits")
        try answer()
        #expect(pass(29))
        #expect(!pass(1))
    }

    @Test func `the time of a body begins when the request before it is answered`() throws {
        try channel.writeInbound(head)
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        try channel.writeInbound(head)
        #expect(pass(3600), "the service may not read while it owes an answer")
        try answer()
        #expect(pass(19))
        #expect(!pass(1))
    }

    @Test func `after a request that was answered early the next header has its time`() throws {
        try channel.writeInbound(head)
        try answer()
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(pass(29))
        #expect(!pass(1))
    }
}

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
