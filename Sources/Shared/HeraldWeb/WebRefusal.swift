package import Hummingbird
package import Logging
import NIOCore

/// An error answer: status and message.
package struct WebRefusal: Error, Hashable, Sendable {
    /// Status, 400 to 599.
    package let status: Int
    /// The error and its remedy, on one line.
    package let message: String
    /// Allowed methods, for the field `allow` of status 405.
    package var allow: [String] = []
    /// Seconds for the field `retry-after`; nil for none.
    package let retryAfter: Int?

    package init(_ status: Int, _ message: String, retryAfter: Int? = nil) {
        self.status = status
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// Body of every error answer.
package struct WebFailure: Codable, Hashable, Sendable {
    package let error: String
}

/// Turns errors into answers with a JSON body (``WebFailure``).
package struct WebFailures<Context: RequestContext>: RouterMiddleware {
    private let logger: Logger
    private let refusal: @Sendable (any Error) -> WebRefusal?

    /// - Parameters:
    ///   - logger: For unexpected errors.
    ///   - refusal: Translates the errors of a service; nil for unexpected ones.
    package init(logger: Logger, _ refusal: @escaping @Sendable (any Error) -> WebRefusal? = { _ in nil }) {
        self.logger = logger
        self.refusal = refusal
    }

    package func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            let refusal = explain(error)
            var response = try WebReply.json(WebFailure(error: refusal.message), status: .init(code: refusal.status))
            if let seconds = refusal.retryAfter { response.headers[.retryAfter] = "\(seconds)" }
            if !refusal.allow.isEmpty { response.headers[.allow] = refusal.allow.joined(separator: ", ") }
            return response
        }
    }

    func explain(_ error: any Error) -> WebRefusal {
        if let known = error as? WebRefusal { return known }
        if let error = error as? HTTPError {
            let words = error.status == .notFound ? "there is nothing at this path" : error.status.reasonPhrase
            return WebRefusal(error.status.code, error.body ?? words)
        }
        if let known = refusal(error) { return known }
        if error is CancellationError || error is ChannelError {
            return WebRefusal(503, "the service stops, or the client has gone")
        }
        logger.warning("a request failed", error: error)
        return WebRefusal(500, "the request failed; the log has the reason")
    }
}
