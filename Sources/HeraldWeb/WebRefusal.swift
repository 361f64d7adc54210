package import Hummingbird
package import Logging

/// Why a request is not done, as its status and words.
package struct WebRefusal: Error, Hashable, Sendable {
    /// The status of the answer: 400 to 599.
    package let status: Int
    /// What is wrong and how to mend it, on one line.
    package let message: String

    package init(_ status: Int, _ message: String) {
        self.status = status
        self.message = message
    }
}

/// The body of every refusal.
package struct WebFailure: Codable, Hashable, Sendable {
    package let error: String

    package init(error: String) {
        self.error = error
    }
}

/// Makes every failure an answer with a JSON body: ``WebFailure``.
package struct WebFailures: RouterMiddleware {
    private let logger: Logger
    private let refusal: @Sendable (any Error) -> WebRefusal?

    /// - Parameters:
    ///   - logger: Told of what nobody expected.
    ///   - refusal: What an error of the requests' own comes to; nil for what nobody expected.
    package init(logger: Logger, _ refusal: @escaping @Sendable (any Error) -> WebRefusal? = { _ in nil }) {
        self.logger = logger
        self.refusal = refusal
    }

    package func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            let found = explain(error)
            return try WebReply.json(WebFailure(error: found.message), status: .init(code: found.status))
        }
    }

    func explain(_ error: any Error) -> WebRefusal {
        if let known = error as? WebRefusal { return known }
        if let error = error as? HTTPError {
            let words = error.status == .notFound ? "there is nothing at this path" : error.status.reasonPhrase
            return WebRefusal(error.status.code, error.body ?? words)
        }
        if let known = refusal(error) { return known }
        logger.warning("a request failed", error: error)
        return WebRefusal(500, "it failed; the log says why")
    }
}
