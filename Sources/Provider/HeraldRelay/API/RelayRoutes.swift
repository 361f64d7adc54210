import HeraldModel
import HeraldWeb
import Hummingbird

/// The requests under `/v1`.
struct RelayRoutes: Sendable {
    /// Maximum length of a body, in bytes: a thousand tokens and the longest payload.
    static let maximumBodyBytes = 256 << 10

    let store: RelayStore
    let clock: any WallClock

    func add(to group: RouterGroup<BasicRequestContext>) {
        var routes = WebRoutes(group, maximumBodyBytes: RelayRoutes.maximumBodyBytes)
        routes.put("devices", DeviceInput.self) { device, _, _ in
            try await store.register(try device.entry(at: clock.now()))
            return WebReply.json(bytes: Array("{}".utf8))
        }
        routes.post("pushes", PushInput.self) { push, _, _ in
            let id = try await store.enqueue(try push.push(at: clock.now()))
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
}
