import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Answers of the screen.
enum ScreenReply {
    /// What a failure's answer holds.
    private struct Failure: Encodable {
        let error: String
    }

    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        bytes(try encode(value), type: "application/json", status: status)
    }

    static func failure(_ status: Int, _ message: String) throws -> Response {
        try json(Failure(error: message), status: HTTPResponse.Status(code: status))
    }

    static func bytes(_ bytes: [UInt8], type: String, status: HTTPResponse.Status = .ok) -> Response {
        Response(status: status, headers: fields(type), body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    static func nothing() -> Response {
        Response(status: .noContent, headers: fields(nil))
    }

    /// What every answer says of itself: it is of the moment, it is what it says it is, and no other site's page has a use
    /// for it.
    static func fields(_ type: String?) -> HTTPFields {
        var fields = HTTPFields()
        if let type { fields[.contentType] = type }
        fields[.cacheControl] = "no-store"
        fields[.xContentTypeOptions] = "nosniff"
        fields[.contentSecurityPolicy] = ScreenAssets.policy
        for (name, value) in [
            ("cross-origin-resource-policy", "same-origin"), ("cross-origin-opener-policy", "same-origin"),
            ("referrer-policy", "no-referrer"), ("x-frame-options", "DENY"),
        ] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        return fields
    }
}

/// Makes every failure an answer with a JSON body.
struct ScreenFailures: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as ScreenRefusal {
            return try ScreenReply.failure(error.status, error.message)
        } catch let error as HTTPError {
            return try ScreenReply.failure(error.status.code, error.body ?? words(for: error.status))
        } catch {
            logger.warning("a request of the screen failed", error: error)
            return try ScreenReply.failure(500, "it failed: \(error)")
        }
    }

    private func words(for status: HTTPResponse.Status) -> String {
        status == .notFound ? "there is nothing at this path" : status.reasonPhrase
    }
}
