import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldWeb

/// The methods that every resource has.
struct MethodResponderTests {
    private func answer(_ method: HTTPRequest.Method, _ path: String) async throws -> Response {
        let router = Router()
        router.add(middleware: HostCheck(host: "127.0.0.1", answersTo: "x"))
        router.get("health") { _, _ in WebReply.live }
        router.get("stream") { _, _ in
            Response(
                status: .ok,
                body: ResponseBody { writer in
                    try await Task.sleep(for: .seconds(3600))  // pace: a body that does not end
                    try await writer.finish(nil)
                }
            )
        }
        router.post("only") { _, _ in "posted" }
        let request = Request(
            head: HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path),
            body: RequestBody(buffer: ByteBuffer())
        )
        let source = ApplicationRequestContextSource(
            channel: EmbeddedChannel(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let responder = MethodResponder(base: router.buildResponder())
        do {
            return try await responder.respond(to: request, context: BasicRequestContext(source: source))
        } catch let error as HTTPError {
            return Response(status: error.status)
        }
    }

    @Test func `HEAD is GET without the content`() async throws {
        let (get, head) = (try await answer(.get, "/health"), try await answer(.head, "/health"))
        #expect(head.status == .ok && head.headers == get.headers)
        #expect(head.headers[.contentLength] == "17" && head.body.contentLength == 0)
        #expect(try await answer(.head, "/nothing").status == .notFound)
        #expect(try await answer(.head, "/only").status == .notFound)
    }

    /// The content of a stream is ended at once, so that its source counts it no more.
    @Test func `HEAD of a stream ends it`() async throws {
        let head = try await answer(.head, "/stream")
        #expect(head.status == .ok && head.body.contentLength == 0)
    }

    @Test func `OPTIONS of the service names the methods`() async throws {
        for path in ["/", "*"] {
            let options = try await answer(.options, path)
            #expect(options.status == .ok && options.headers[.allow] == "GET, HEAD, OPTIONS")
        }
        #expect(try await answer(.options, "/health").status == .notFound)
    }
}
