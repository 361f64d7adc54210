import Foundation
import HTTPTypes
import Hummingbird
import Logging

/// Answers of the console's doors.
enum AdminReply {
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return json(bytes: Array(try encoder.encode(value)), status: status)
    }

    static func json(bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        answer(bytes, type: "application/json", status: status)
    }

    static func text(_ text: String, type: String) -> Response {
        answer(Array(text.utf8), type: type, status: .ok)
    }

    private static func answer(_ bytes: [UInt8], type: String, status: HTTPResponse.Status) -> Response {
        var fields = HTTPFields()
        fields[.contentType] = type
        // What operators read is of the moment, and for their eyes.
        fields[.cacheControl] = "no-store"
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

/// Makes every failure an answer with a JSON body.
struct AdminFailures: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as AdminError {
            return try failure(error.code.httpStatus, error.message)
        } catch let error as HTTPError {
            return try failure(error.status.code, error.body ?? words(for: error.status))
        } catch {
            logger.warning("an operator's request failed", error: error)
            return try failure(500, "it failed: \(error)")
        }
    }

    private func failure(_ status: Int, _ message: String) throws -> Response {
        try AdminReply.json(AdminFailure(error: message), status: HTTPResponse.Status(code: status))
    }

    private func words(for status: HTTPResponse.Status) -> String {
        switch status {
        case .notFound: "there is nothing at this path"
        default: status.reasonPhrase
        }
    }
}

/// Lets in who knows the bearer token.
struct AdminToken: RouterMiddleware {
    let token: [UInt8]

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        guard isKnown(request.headers[.authorization]) else {
            throw AdminError(.unauthorized, "send `authorization: Bearer …` with the token in run/admin.token")
        }
        return try await next(request, context)
    }

    /// Takes as long for a token that is nearly right as for any other.
    private func isKnown(_ field: String?) -> Bool {
        guard let field, field.prefix(7).lowercased() == "bearer " else { return false }
        let shown = Array(field.dropFirst(7).utf8)
        guard shown.count == token.count, !token.isEmpty else { return false }
        return zip(shown, token).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
