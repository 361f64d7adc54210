import Foundation
import HTTPTypes
import Hummingbird
import Logging

/// Answers of the relay's door.
enum RelayReply {
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes: [UInt8] = Array(try encoder.encode(value))
        return answer(bytes, type: "application/json", status: status)
    }

    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        answer(bytes, type: "application/json", status: status)
    }

    static func text(_ text: String, type: String) -> Response {
        answer(Array(text.utf8), type: type, status: .ok)
    }

    private static func answer(_ bytes: [UInt8], type: String, status: HTTPResponse.Status) -> Response {
        var fields = HTTPFields()
        fields[.contentType] = type
        fields[.cacheControl] = "no-store"
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

/// Why a request was not done, in words that tell what to do.
struct RelayRequestError: Error {
    let status: HTTPResponse.Status
    let message: String

    init(_ status: HTTPResponse.Status, _ message: String) {
        self.status = status
        self.message = message
    }
}

/// Makes every failure an answer with a JSON body.
struct RelayFailures: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as RelayRequestError {
            return try failure(error.status, error.message)
        } catch let error as HTTPError {
            let words = error.status == .notFound ? "there is nothing at this path" : error.status.reasonPhrase
            return try failure(error.status, error.body ?? words)
        } catch let error as RelayStoreError where error.code == .unavailable {
            return try failure(.serviceUnavailable, "the queue does not work now: try again")
        } catch {
            logger.warning("a request failed", error: error)
            return try failure(.internalServerError, "it failed; the relay's log says why")
        }
    }

    private func failure(_ status: HTTPResponse.Status, _ message: String) throws -> Response {
        try RelayReply.json(["error": message], status: status)
    }
}

/// Lets in who knows the bearer token.
struct RelayToken: RouterMiddleware {
    let token: [UInt8]

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        guard isKnown(request.headers[.authorization]) else {
            throw RelayRequestError(.unauthorized, "send `authorization: Bearer …` with the token of --api-token")
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
