import HTTPTypes
import Hummingbird

/// The app's page, which the device's screen shows while the app is open, and its requests.
///
///     GET  /                                            the page
///     GET  /api/kitchen                                 now, languages, timers, news, trouble
///     POST /api/timers               name, seconds      starts a timer
///     POST /api/timers/ID/MORE|STOP  {}                 as the buttons of the notification
///     POST /api/dinner               {}                 → {"told": 2}
struct KitchenPage: Sendable {
    let app: KitchenApp

    private struct Start: Decodable {
        var name: String
        var seconds: Double
    }

    private struct Nothing: Codable {}

    func router() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: KitchenFailures())
        router.add(middleware: LoopbackOnly())
        for (path, bytes, type) in [
            ("/", PackageResources.kitchen_html, "text/html; charset=utf-8"),
            ("kitchen.js", PackageResources.kitchen_js, "text/javascript; charset=utf-8"),
            ("kitchen.css", PackageResources.kitchen_css, "text/css; charset=utf-8"),
        ] {
            router.get(RouterPath(path)) { _, _ in KitchenHTTP.bytes(bytes, type: type) }
        }
        router.get("api/kitchen") { _, _ in try KitchenHTTP.json(await app.view()) }
        router.post("api/timers") { request, _ in
            let start = try await KitchenHTTP.body(Start.self, of: request)
            try await app.start(start.name, seconds: start.seconds)
            return try KitchenHTTP.json(Nothing())
        }
        router.post("api/timers/:timer/:button") { request, context in
            _ = try await KitchenHTTP.body(Nothing.self, of: request)
            let timer = try context.parameters.require("timer")
            try await app.press(try context.parameters.require("button"), timer)
            return try KitchenHTTP.json(Nothing())
        }
        router.post("api/dinner") { request, _ in
            _ = try await KitchenHTTP.body(Nothing.self, of: request)
            return try KitchenHTTP.json(DinnerAnswer(told: try await app.dinner()))
        }
        return router
    }
}

/// Refuses requests for other hosts: other sites in the user's browser could reach the page under names of their own.
///
/// Changes must be JSON besides, which a browser sends to another site only after asking it.
private struct LoopbackOnly: RouterMiddleware {
    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        let host = request.head.authority?.lowercased().split(separator: ":", maxSplits: 1).first
        guard host == "127.0.0.1" || host == "localhost" else {
            throw KitchenRefusal("the kitchen answers to localhost and 127.0.0.1", status: .misdirectedRequest)
        }
        return try await next(request, context)
    }
}
