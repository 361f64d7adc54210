import HTTPTypes
import HeraldModel
import Hummingbird

/// Takes from a trusted proxy the address of its client (`X-Forwarded-For`) and the host that the client asked for
/// (`X-Forwarded-Host`).
///
/// Each proxy adds the address of its own client. So the client is the last address that is not a proxy's, and whoever wrote
/// those before it is unknown. A page says by itself whether it came over TLS (`Origin`).
struct ForwardedRequest: RouterMiddleware {
    /// Whether an IP address is that of a trusted proxy.
    let isProxy: @Sendable (String) -> Bool

    func handle(
        _ request: Request,
        context: ConsoleContext,
        next: (Request, ConsoleContext) async throws -> Response
    ) async throws -> Response {
        guard isProxy(context.address) else { return try await next(request, context) }
        var (head, context) = (request.head, context)
        for address in Self.values("x-forwarded-for", of: request).reversed() {
            guard !address.contains("%"), NumericAddress(address) != nil else { break }
            context.address = address
            guard isProxy(address) else { break }
        }
        if let host = Self.values("x-forwarded-host", of: request).last { head.authority = host }
        return try await next(Request(head: head, body: request.body), context)
    }

    private static func values(_ name: String, of request: Request) -> [String] {
        let fields = HTTPField.Name(name).map { request.headers[values: $0] } ?? []
        return fields.flatMap { $0.split(separator: ",") }.map { $0.filter { $0 != " " && $0 != "\t" } }
    }
}
