import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldWeb

/// Parameters and bodies that a route takes or refuses.
struct WebRoutesTests {
    private struct Order: Decodable {
        let name: String
    }

    /// The answer's text, or the refusal's.
    private func answer(_ method: HTTPRequest.Method, _ path: String, _ body: String = "") async throws -> String {
        let router = Router()
        var routes = WebRoutes(router.group("v1"), maximumBodyBytes: 40)
        routes.get("list", ["q", "limit"]) { request, _ in WebReply.text(request.uri.path, type: "") }
        routes.on(.delete, "list", takes: ["q"]) { _, _ in WebReply.text("deleted", type: "") }
        routes.get("plain") { _, _ in WebReply.text("plain", type: "") }
        routes.on(.post, "stop", takes: []) { _, _ in WebReply.text("stopped", type: "") }
        routes.post("orders", Order.self) { order, _, _ in WebReply.text(order.name, type: "") }
        routes.refuseOtherMethods()
        let request = Request(
            head: HTTPRequest(method: method, scheme: "http", authority: "localhost", path: "/v1/\(path)"),
            body: RequestBody(buffer: ByteBuffer(string: body))
        )
        let source = ApplicationRequestContextSource(
            channel: EmbeddedChannel(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        do {
            let context = BasicRequestContext(source: source)
            let answer = try await router.buildResponder().respond(to: request, context: context)
            return "\(answer.status.code)"
        } catch let refusal as WebRefusal {
            return "\(refusal.status) \(refusal.message)"
        }
    }

    @Test(arguments: [
        ("list?q=a&limit=1", "200"), ("list?", "200"), ("list", "200"), ("plain", "200"),
        ("list?limits=1", "400 unknown parameter `limits`: did you mean `limit`?"),
        ("list?Q=a", "400 unknown parameter `Q`: did you mean `q`?"),
        ("list?tag=a", "400 unknown parameter `tag`: they are q, limit"),
        ("list?%71=a", "400 unknown parameter `%71`: they are q, limit"),
        ("list?q=a&q=b", "400 the parameter q appears more than once"),
        ("plain?q=a", "400 unknown parameter `q`: this request has none"),
    ])
    func `a parameter that a route does not have is refused`(path: String, words: String) async throws {
        #expect(try await answer(.get, path) == words)
    }

    @Test func `so is one of another method of its path`() async throws {
        #expect(try await answer(.delete, "list?q=a") == "200")
        #expect(try await answer(.delete, "list?limit=1") == "400 unknown parameter `limit`: they are q")
    }

    @Test(arguments: ["", "{}", " { } "])
    func `an empty body is none`(body: String) async throws {
        #expect(try await answer(.post, "stop", body) == "200")
        #expect(try await answer(.delete, "list", body) == "200")
    }

    @Test(arguments: [#"{"id":1}"#, #"{"q":"tag:a"}"#, "[]", "x", "null", String(repeating: " ", count: 41)])
    func `a body is refused where it would be ignored`(body: String) async throws {
        #expect(try await answer(.post, "stop", body) == "400 this request takes no body: remove it")
        #expect(try await answer(.delete, "list", body) == "400 this request takes no body: remove it")
    }

    @Test func `a body has its limit and its keys`() async throws {
        #expect(try await answer(.post, "orders", #"{"name":"a"}"#) == "200")
        #expect(try await answer(.post, "orders", #"{"nam":"a"}"#) == "400 unknown key `nam`: did you mean `name`?")
        let parameter = try await answer(.post, "orders?q=a", #"{"name":"a"}"#)
        #expect(parameter == "400 unknown parameter `q`: this request has none")
        let long = #"{"name":"\#(String(repeating: "a", count: 40))"}"#
        #expect(try await answer(.post, "orders", long) == "413 the body is longer than 40 bytes")
    }
}
