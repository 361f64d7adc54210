import HeraldModel
import HeraldWeb
import Hummingbird

/// Routes of providers: their credentials and apps.
struct ProviderRoutes: Sendable {
    let administration: any Administration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("credentials") { request, _ in
            try WebReply.json(await administration.credentials(try PageRequest(request)))
        }
        routes.get("credentials/:id") { _, context in
            try WebReply.json(await administration.credential(try context.parameters.require("id")))
        }
        routes.post("credentials/certificate") { request, _ in
            let order = try await body(request, as: CertificateOrder.self)
            return try WebReply.json(await administration.issueCertificate(order))
        }
        routes.post("credentials/key") { request, _ in
            try WebReply.json(await administration.addKey(try await body(request, as: KeyOrder.self)))
        }
        routes.post("credentials/:id/revoke") { _, context in
            try WebReply.json(await administration.revokeCredential(try context.parameters.require("id")))
        }
        routes.get("apps") { request, _ in
            let (topic, page) = (try Topic.ofQuery(request), try PageRequest(request))
            let onlyUnused = request.uri.queryParameters["unused"] == "true"
            return try WebReply.json(await administration.apps(of: topic, onlyUnused: onlyUnused, page))
        }
        routes.post("apps/:topic/forget") { request, context in
            let topic = try Topic.ofPath(context)
            return try WebReply.json(await administration.forgetApp(topic, in: try PushEnvironment.ofQuery(request)))
        }
        routes.refuseOtherMethods()
    }

    private func body<Value: Decodable>(_ request: Request, as type: Value.Type) async throws -> Value {
        try await WebBody.json(of: request, as: type, limit: AdminRoutes.maximumBodyBytes)
    }
}
