package import Hummingbird

/// Requires the bearer token (RFC 6750 §2.1).
package struct BearerToken<Context: RequestContext>: RouterMiddleware {
    private let token: [UInt8]
    private let place: String

    /// An empty token admits nobody; `place` says in the refusal where to find the token.
    package init(_ token: String, place: String) {
        self.token = Array(token.utf8)
        self.place = place
    }

    package func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard isKnown(request.headers[.authorization]) else {
            throw WebRefusal(401, "send `authorization: Bearer …` with the token \(place)")
        }
        return try await next(request, context)
    }

    /// The token in the field `authorization`; nil if there is none.
    package static func secret(in field: String?) -> String? {
        guard let field, field.prefix(7).lowercased() == "bearer " else { return nil }
        return String(field.dropFirst(7))
    }

    /// Compares in constant time.
    func isKnown(_ field: String?) -> Bool {
        guard let shown = Self.secret(in: field).map({ Array($0.utf8) }) else { return false }
        guard shown.count == token.count, !token.isEmpty else { return false }
        return zip(shown, token).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
