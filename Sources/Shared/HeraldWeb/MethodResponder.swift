import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Answers the methods that every resource has: HEAD as GET without the content (RFC 9110 §9.3.2), and OPTIONS of the whole
/// service (§9.3.7), which load balancers send as their simplest check.
struct MethodResponder<Base: HTTPResponder>: HTTPResponder {
    let base: Base

    func respond(to request: Request, context: Base.Context) async throws -> Response {
        switch request.method {
        case .head:
            var head = request.head
            head.method = .get
            let response = try await base.respond(to: Request(head: head, body: request.body), context: context)
            if response.body.contentLength == nil { await Self.end(response.body) }
            return response.createHeadResponse()
        case .options where request.head.path == "/" || request.head.path == "*":
            return Response(status: .ok, headers: [.allow: "GET, HEAD, OPTIONS"])
        default: return try await base.respond(to: request, context: context)
        }
    }

    /// Ends a content that goes on until its client leaves, so that its source hears of it.
    private static func end(_ body: ResponseBody) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await body.write(NoContent()) }
            group.cancelAll()
        }
    }
}

/// A client that has left.
private struct NoContent: ResponseBodyWriter {
    mutating func write(_ buffer: ByteBuffer) async throws { throw CancellationError() }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
