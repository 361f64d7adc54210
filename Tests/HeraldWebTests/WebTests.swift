import Foundation
import Hummingbird
import Logging
import NIOCore
import Testing

@testable import HeraldWeb

@Suite struct WebTests {
    private struct Order: Decodable {
        let count: Int
        let name: String
    }

    private static func request(_ text: String) -> Request {
        Request(
            head: .init(method: .post, scheme: nil, authority: nil, path: "/"),
            body: RequestBody(buffer: ByteBuffer(string: text))
        )
    }

    @Test(arguments: [
        (#"{"count":1}"#, 400, "`name` is missing"),
        (#"{"count":"1","name":"a"}"#, 400, "`count` has the wrong type: see /openapi.yaml"),
        (#"{"count":null,"name":"a"}"#, 400, "`count` has the wrong type: see /openapi.yaml"),
        ("[]", 400, "`the body` has the wrong type: see /openapi.yaml"),
        (#"{"count":"#, 400, "the body cannot be read: not JSON at byte 9"),
        (#"{"count":1e400,"name":"a"}"#, 400, "`count` is out of range: see /openapi.yaml"),
        (#"{"count":1.5,"name":"a"}"#, 400, "`count` is out of range: see /openapi.yaml"),
        (#"{"count":1,"count":2}"#, 400, "the body cannot be read: a repeated name at byte 11"),
        (#"{"name":"\ud83d"}"#, 400, "the body cannot be read: half of a surrogate pair at byte 9"),
        (#"{"cuont":1,"name":"a"}"#, 400, "unknown key `cuont`: did you mean `count`?"),
        (#"{"Count":1,"name":"a"}"#, 400, "unknown key `Count`: did you mean `count`?"),
        (#"{"count":1,"name":"a","b":2}"#, 400, "unknown key `b`: the keys are count, name"),
        (#"{"b":2,"name":"a"}"#, 400, "unknown key `b`: see /openapi.yaml"),
        (#"{"count":1,"name":"a","":2}"#, 400, "unknown key ``: the keys are count, name"),
        (#"{"count":1,"name":"a long, long name"}"#, 413, "the body is longer than 30 bytes"),
    ])
    func `a body that is not what a request takes is refused in words`(
        text: String,
        status: Int,
        words: String
    ) async {
        await #expect(throws: WebRefusal(status, words)) {
            _ = try WebBody.json(try await WebBody.bytes(of: WebTests.request(text), limit: 30), as: Order.self)
        }
    }

    @Test func `a body is read`() async throws {
        let order = try WebBody.json(Array(#"{"count":2,"name":"a"}"#.utf8), as: Order.self)
        #expect(order.count == 2 && order.name == "a")
    }

    @Test(arguments: [
        ("Bearer secret", true), ("bearer secret", true), ("Bearer secre", false), ("Bearer secrets", false),
        ("Bearer Secret", false), ("Basic secret", false), ("secret", false), ("", false), (nil, false),
    ])
    func `only the token lets in`(field: String?, isKnown: Bool) {
        #expect(BearerToken<BasicRequestContext>("secret", place: "").isKnown(field) == isKnown)
    }

    @Test(arguments: ["Bearer ", "Bearer x", nil])
    func `an empty token lets nobody in`(field: String?) {
        #expect(!BearerToken<BasicRequestContext>("", place: "").isKnown(field))
    }

    @Test(arguments: [
        (
            EADDRINUSE,
            "console: 127.0.0.1:80 is in use by another program; stop it, or choose another --console-port (0 picks a free one)"
        ),
        (
            EADDRNOTAVAIL,
            "console: 127.0.0.1:80 is not an address of this machine; choose another --console-host"
        ),
        (
            EACCES,
            "console: not allowed to listen on 127.0.0.1:80; ports below 1024 need root or CAP_NET_BIND_SERVICE"
        ),
    ])
    func `a listener that cannot be opened says why, and what to do`(number: CInt, words: String) {
        let place = ListenAddress(
            listener: "console",
            .port(host: "127.0.0.1", port: 80),
            portOption: "--console-port",
            hostOption: "--console-host"
        )
        #expect(WebListenerError(place, cause: IOError(errnoCode: number, reason: "bind")).message == words)
    }

    @Test func `an error becomes words, and the listener has the last one`() {
        struct Broken: Error {}
        let plain = WebFailures<BasicRequestContext>(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let telling = WebFailures<BasicRequestContext>(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        {
            WebRefusal(500, "it failed: \($0)")
        }
        #expect(plain.explain(Broken()) == WebRefusal(500, "the request failed; the log has the reason"))
        #expect(telling.explain(Broken()) == WebRefusal(500, "it failed: Broken()"))
        #expect(telling.explain(HTTPError(.notFound)) == WebRefusal(404, "there is nothing at this path"))
        #expect(telling.explain(WebRefusal(409, "no")) == WebRefusal(409, "no"))
    }

    @Test func `a listener that cannot be opened for another reason says the system's`() throws {
        let place = ListenAddress(listener: "console", .socket(path: "/a/b"), portOption: "", hostOption: "")
        let unknown = #expect(throws: SocketAddressError.UnknownHost.self) {
            try SocketAddress.makeAddressResolvingHost("[::1]", port: 1)
        }
        let words = WebListenerError(place, cause: try #require(unknown)).message
        #expect(words.contains("is not an address of this machine"))
        let error = WebListenerError(place, cause: IOError(errnoCode: ENAMETOOLONG, reason: "bind"))
        #expect(error.message.hasPrefix("console: cannot listen on /a/b: "))
    }
}
