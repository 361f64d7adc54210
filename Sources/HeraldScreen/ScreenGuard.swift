import HTTPTypes
import HeraldWeb
import Hummingbird

/// Protects the device from pages of other sites, which run in the user's browser and can reach loopback ports.
///
/// A request that changes something must be JSON, which forms of other sites cannot send, and come from this page or from
/// no page. `HostCheck` prevents DNS rebinding.
struct ScreenGuard: RouterMiddleware {
    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        if request.method != .get, request.method != .head {
            try refuseForeign(request)
        }
        return try await next(request, context)
    }

    private func refuseForeign(_ request: Request) throws {
        let authority = request.head.authority?.lowercased() ?? ""
        if let origin = request.headers[.origin], origin.lowercased() != "http://" + authority {
            throw WebRefusal(403, "a page of another site may not use the device")
        }
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ $0 != " " }) == "application/json" else {
            throw WebRefusal(415, "send the action with content-type: application/json")
        }
    }
}
