import HTTPTypes
import HeraldWeb
import Hummingbird

/// Lets callers in to the requests of their role.
struct ConsoleGate: RouterMiddleware {
    /// The caller of a request; nil if it shows no proof.
    ///
    /// It throws for a wrong one.
    let identify: @Sendable (Request, ConsoleContext) async throws -> ConsoleCaller?

    func handle(
        _ request: Request,
        context: ConsoleContext,
        next: (Request, ConsoleContext) async throws -> Response
    ) async throws -> Response {
        let rule = RoleTable.rule(request.method, context.endpointPath ?? "")
        var context = context
        if let role = rule.role {
            guard let caller = try await identify(request, context) else { throw Self.isUnknown }
            guard caller.role >= role else { throw Self.isBeyond(role, caller) }
            context.caller = caller
        }
        return try await next(request, context)
    }

    static let isUnknown = AdminError(
        .unauthorized,
        "send `authorization: Bearer …` with the token in run/admin.token"
    )

    private static func isBeyond(_ role: ConsoleRole, _ caller: ConsoleCaller) -> AdminError {
        AdminError(.forbidden, "this needs the role \(role.rawValue), and \(caller.name) is a \(caller.role.rawValue)")
    }
}
