import HeraldModel
import HeraldWeb
import Hummingbird

/// The requests under `/v1`.
struct RelayRoutes: Sendable {
    /// Maximum length of a body, in bytes: a thousand tokens and the longest payload.
    static let maximumBodyBytes = 256 << 10

    let store: any RelayStore
    let clock: any WallClock

    func add(to group: RouterGroup<BasicRequestContext>) {
        var routes = WebRoutes(group)
        routes.put("devices") { request, _ in
            let device = try await body(of: request, as: DeviceInput.self).entry(at: clock.now())
            try await store.register(device)
            return WebReply.json(bytes: Array("{}".utf8))
        }
        routes.post("pushes") { request, _ in
            let push = try await body(of: request, as: PushInput.self).push(at: clock.now())
            let id = try await store.enqueue(push)
            return try WebReply.json(["id": id], status: .created)
        }
        routes.get("pushes/:id") { _, context in
            guard let id = Int64(try context.parameters.require("id")), id > 0 else {
                throw WebRefusal(400, "the identifier of a push is a number")
            }
            guard let record = try await store.push(id) else {
                throw WebRefusal(404, "there is no push \(id): it was never queued, or was purged")
            }
            return try WebReply.json(record)
        }
        routes.get("status") { _, _ in try WebReply.json(await store.progress(at: clock.now())) }
        routes.refuseOtherMethods()
    }

    private func body<Value: StrictDecodable>(of request: Request, as type: Value.Type) async throws -> Value {
        try await WebBody.json(of: request, as: StrictKeys<Value>.self, limit: RelayRoutes.maximumBodyBytes).value
    }
}
