package import Hummingbird
package import Logging
import NIOCore

/// Turns errors into answers with a JSON body (``WebFailure``).
package struct WebFailures<Context: RequestContext>: RouterMiddleware {
    private let logger: Logger
    private let refusal: @Sendable (any Error) -> WebRefusal?

    /// `refusal` translates the errors of a service; nil for unexpected ones, which the logger gets.
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
