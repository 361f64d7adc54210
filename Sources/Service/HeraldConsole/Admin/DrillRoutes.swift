import HeraldWeb
import Hummingbird

/// Routes of the drills.
struct DrillRoutes: Sendable {
    let administration: any Administration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("drills") { _, _ in try WebReply.json(await administration.allDrills()) }
        routes.post("drills", DrillRequest.self) { wanted, _, _ in
            try WebReply.json(await administration.startDrill(wanted))
        }
        routes.post("drills/stop") { _, _ in try WebReply.json(await administration.stopDrills()) }
        routes.post("drills/:id/stop") { _, context in
            try WebReply.json(await administration.stopDrill(try id(context)))
        }
        routes.post("drills/:id/renew") { _, context in
            try WebReply.json(await administration.renewDrill(try id(context)))
        }
        routes.refuseOtherMethods()
    }

    private func id(_ context: ConsoleContext) throws -> Int {
        guard let id = Int(try context.parameters.require("id")) else {
            throw AdminError(.badRequest, "the identifier of a drill is a number: see `herald drill list`")
        }
        return id
    }
}
