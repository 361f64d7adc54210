import Foundation
import HTTPTypes
import Hummingbird

/// The requests of the family's server.
///
///     POST /api/sync    device, token, languages, timers → {"timers": [...]}
///     POST /api/dinner  device                           → {"told": 2}
struct FamilyRoutes: Sendable {
    let family: Family
    let code: String

    func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: KitchenFailures())
        router.add(middleware: FamilyCode(code: Array(code.utf8)))
        router.post("api/sync") { request, _ in
            let message = try await KitchenHTTP.body(FamilyMessage.self, of: request)
            return try KitchenHTTP.json(
                try await family.synchronize(message, now: Date().timeIntervalSince1970)
            )
        }
        router.post("api/dinner") { request, _ in
            try KitchenHTTP.json(await family.dinner(try await KitchenHTTP.body(DinnerCall.self, of: request)))
        }
        return router
    }
}

/// Lets only those in who know the family's secret.
private struct FamilyCode: RouterMiddleware {
    let code: [UInt8]

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        let words = request.headers[.authorization]?.split(separator: " ") ?? []
        guard words.count == 2, words[0].lowercased() == "bearer", isCode(Array(words[1].utf8)) else {
            throw KitchenRefusal("say the family's code: authorization: Bearer CODE", status: .unauthorized)
        }
        return try await next(request, context)
    }

    /// Compares in a time that does not depend on where they differ.
    private func isCode(_ bytes: [UInt8]) -> Bool {
        bytes.count == code.count && zip(bytes, code).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
