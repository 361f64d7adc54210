import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HeraldWeb

struct WebConnectionTests {
    private let channel = EmbeddedChannel()
    private let head = HTTPServerRequestPart.head(HTTPRequestHead(version: .http1_1, method: .POST, uri: "/"))

    init() throws {
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandler(
            WebConnection(patience: .seconds(30), connections: WebConnections(descriptors: 16))
        )
    }

    private func pass(_ seconds: Int64) -> Bool {
        channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
        return channel.isActive
    }

    private func answer() throws {
        try channel.writeOutbound(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }

    private func sentHead() throws -> HTTPResponseHead {
        guard case .head(let head) = try #require(try channel.readOutbound(as: HTTPServerResponsePart.self)) else {
            throw ChannelError.inappropriateOperationForState
        }
        return head
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
        for _ in 0..<29 {
            #expect(pass(1))
            try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "x")))
        }
        #expect(!pass(1))
    }

    @Test func `an answer before the end of its request is the last, and its client may end it`() throws {
        try channel.writeInbound(head)
        try answer()
        #expect(try sentHead().headers["connection"] == ["close"])
        #expect(channel.isActive, "a client that still sends would be reset")
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(!channel.isActive)
    }

    @Test func `a client that goes on after an early answer is closed a second later`() throws {
        try channel.writeInbound(head)
        try answer()
        try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "x")))
        #expect(!pass(1))
    }

    @Test(arguments: [true, false])
    func `a request to change the protocol is answered, and the last`(isConnect: Bool) throws {
        var request = HTTPRequestHead(version: .http1_1, method: isConnect ? .CONNECT : .GET, uri: "/")
        if !isConnect { request.headers = ["connection": "upgrade", "upgrade": "h2c"] }
        try channel.writeInbound(HTTPServerRequestPart.head(request))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        try answer()
        #expect(try sentHead().headers["connection"] == ["close"])
        #expect(!channel.isActive)
    }

    @Test func `a request with two hosts is refused`() throws {
        var request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        request.headers = HTTPHeaders([("host", "localhost"), ("host", "example.com")])
        try channel.writeInbound(HTTPServerRequestPart.head(request))
        #expect(try sentHead().status == .badRequest)
    }

    @Test func `a client that has gone waits for its answer no longer than a second`() throws {
        try channel.writeInbound(head)
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(channel.isActive, "the answer may be on its way")
        #expect(!pass(1))
    }

    @Test(arguments: [true, false])
    func `at the end of the listener a request that is not whole has a second`(isWhole: Bool) throws {
        try channel.writeInbound(head)
        if isWhole { try channel.writeInbound(HTTPServerRequestPart.end(nil)) }
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(pass(1) == isWhole)
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
        #expect(pass(29))
        #expect(!pass(1))
    }
}
