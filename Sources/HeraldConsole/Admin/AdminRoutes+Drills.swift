import HeraldWeb
import Hummingbird

extension AdminRoutes {
    /// `GET drills`, `POST drills`, `POST drills/ID/stop`, `POST drills/stop`.
    func addDrills(to routes: RouterGroup<BasicRequestContext>) {
        routes.get("drills") { _, _ in try WebReply.json(administration.drills) }
        routes.post("drills") { request, _ in
            let wanted = try await WebBody.json(
                of: request,
                as: DrillRequest.self,
                limit: AdminRoutes.maximumBodyBytes
            )
            return try WebReply.json(administration.startDrill(wanted))
        }
        routes.post("drills/stop") { _, _ in try WebReply.json(administration.stopDrills()) }
        routes.post("drills/:id/stop") { _, context in
            let text = try context.parameters.require("id")
            guard let id = Int(text) else {
                throw AdminError(.badRequest, "a drill has a number, as `herald drill list` shows it")
            }
            return try WebReply.json(administration.stopDrill(id))
        }
    }
}
