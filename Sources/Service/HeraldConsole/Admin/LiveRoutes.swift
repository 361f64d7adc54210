import HeraldModel
import HeraldWeb
import Hummingbird

/// A list in an object, so that it may have more members later.
struct LiveItems<Item: Codable & Sendable>: Codable, Sendable {
    let items: [Item]
}

/// Routes of the problems and refusals.
struct LiveRoutes: Sendable {
    let live: LiveConsole

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("problems", ["history"]) { request, _ in
            let wantsHistory = try isWanted("history", request)
            return try WebReply.json(LiveItems(items: live.problems(withHistory: wantsHistory)))
        }
        routes.get("refusals") { _, _ in
            try WebReply.json(LiveItems(items: live.refusals.entries(at: live.clock.now())))
        }
        routes.refuseOtherMethods()
    }

    /// `?NAME=1`.
    private func isWanted(_ name: String, _ request: Request) throws -> Bool {
        guard let text = request.uri.queryParameters[name[...]] else { return false }
        guard text == "0" || text == "1" else { throw AdminError(.badRequest, "\(name) must be 0 or 1") }
        return text == "1"
    }
}
