import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Creates responses.
enum ChatReply {
    private struct Failure: Encodable {
        let error: String
    }

    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return bytes(Array(try encoder.encode(value)), type: "application/json", status: status)
    }

    static func failure(_ refusal: ChatRefusal) throws -> Response {
        var response = try json(Failure(error: refusal.words), status: refusal.status)
        if refusal.status == .tooManyRequests { response.headers[.retryAfter] = "10" }
        if refusal.status == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
        return response
    }

    /// A page.
    ///
    /// Only the app's page may be shown in a frame, by the screens of devices on this machine.
    static func page(_ bytes: [UInt8], status: HTTPResponse.Status = .ok, isFramed: Bool = false) -> Response {
        self.bytes(bytes, type: "text/html; charset=utf-8", status: status, isFramed: isFramed)
    }

    static func page(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
        page(Array(text.utf8), status: status)
    }

    static func bytes(
        _ bytes: [UInt8],
        type: String,
        status: HTTPResponse.Status = .ok,
        isFramed: Bool = false
    ) -> Response {
        var fields: HTTPFields = [
            .contentType: type,
            .cacheControl: "no-store",
            .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: """
            default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
            base-uri 'none'; form-action 'self'; \
            frame-ancestors \(isFramed ? "http://127.0.0.1:* http://localhost:*" : "'none'")
            """,
        ]
        for (name, value) in [("referrer-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin")] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

/// Converts every failure to a response with a JSON body.
struct ChatFailures: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let refusal as ChatRefusal {
            return try ChatReply.failure(refusal)
        } catch let error as HTTPError {
            let words = error.status == .notFound ? "there is nothing at this path" : error.status.reasonPhrase
            return try ChatReply.failure(ChatRefusal(error.status, words))
        } catch {
            // Messages and users must not be logged.
            logger.error("a request failed", metadata: ["path": "\(request.uri.path)", "error": "\(type(of: error))"])
            return try ChatReply.failure(ChatRefusal(.internalServerError, "it did not work; nothing has changed"))
        }
    }
}
