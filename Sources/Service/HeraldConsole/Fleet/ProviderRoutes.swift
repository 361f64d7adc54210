import HeraldModel
import HeraldWeb
import Hummingbird

/// Routes of providers: their credentials and apps.
struct ProviderRoutes: Sendable {
    let administration: any Administration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("credentials", PageRequest.parameters) { request, _ in
            try WebReply.json(await administration.credentials(try PageRequest(request)))
        }
        routes.get("credentials/:id") { _, context in
            try WebReply.json(await administration.credential(try context.parameters.require("id")))
        }
        routes.post("credentials/certificate", CertificateOrder.self) { order, _, _ in
            try WebReply.json(await administration.issueCertificate(order))
        }
        routes.post("credentials/key", KeyOrder.self) { order, _, _ in
            try WebReply.json(await administration.addKey(order))
        }
        routes.post("credentials/:id/revoke") { _, context in
            try WebReply.json(await administration.revokeCredential(try context.parameters.require("id")))
        }
        routes.get("apps", ["topic", "unused"] + PageRequest.parameters) { request, _ in
            let (topic, page) = (try Topic.ofQuery(request), try PageRequest(request))
            let onlyUnused = try PageRequest.truth("unused", request) ?? false
            return try WebReply.json(await administration.apps(of: topic, onlyUnused: onlyUnused, page))
        }
        routes.post("apps/:topic/forget", ["environment"]) { request, context in
            let topic = try Topic.ofPath(context)
            return try WebReply.json(await administration.forgetApp(topic, in: try PushEnvironment.ofQuery(request)))
        }
        routes.refuseOtherMethods()
    }
}
