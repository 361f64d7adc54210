import HTTPTypes
package import Hummingbird

/// Adds security headers to every response: no sniffing, no use by other sites, and no caching unless the response allows it.
package struct PageHeaders<Context: RequestContext>: RouterMiddleware {
    private let fields: HTTPFields

    /// Creates the headers of a page.
    /// - Parameter policy: The content security policy, one directive a line.
    package init(policy: [UInt8]) {
        let directives = String(decoding: policy, as: UTF8.self).split(whereSeparator: \.isNewline)
        var fields: HTTPFields = [
            .cacheControl: "no-store",
            .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: directives.joined(separator: "; "),
        ]
        for (name, value) in [
            ("cross-origin-resource-policy", "same-origin"), ("cross-origin-opener-policy", "same-origin"),
            ("referrer-policy", "no-referrer"), ("x-frame-options", "DENY"),
        ] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        self.fields = fields
    }

    package func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        for field in fields where response.headers[field.name] == nil { response.headers[field.name] = field.value }
        return response
    }
}
