import HTTPTypes
import Hummingbird

/// Adds security headers to every response: no caching, no sniffing, no use by other sites.
struct ScreenHeaders: RouterMiddleware {
    private let fields: HTTPFields

    init() {
        var fields: HTTPFields = [
            .cacheControl: "no-store",
            .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: ScreenAssets.policy,
        ]
        for (name, value) in [
            ("cross-origin-resource-policy", "same-origin"), ("cross-origin-opener-policy", "same-origin"),
            ("referrer-policy", "no-referrer"), ("x-frame-options", "DENY"),
        ] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        self.fields = fields
    }

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        for field in fields { response.headers[field.name] = field.value }
        return response
    }
}
