import HeraldModel
import HeraldWeb
import Hummingbird

/// Routes of devices and invitations.
struct DeviceRoutes: Sendable {
    let administration: any FleetAdministration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("devices", ["q", "connected"] + PageRequest.parameters) { request, _ in
            try WebReply.json(await administration.devices(try query(request)))
        }
        routes.get("devices/:id") { _, context in
            try WebReply.json(await administration.device(try context.parameters.require("id")))
        }
        routes.put("devices/:id/labels", LabelsRequest.self) { wanted, _, context in
            let id = try context.parameters.require("id")
            return try WebReply.json(await administration.setLabels(wanted.labels, of: id))
        }
        routes.post("devices/:id/revoke") { _, context in
            try WebReply.json(await administration.revokeDevice(try context.parameters.require("id")))
        }
        routes.post("devices/:id/disconnect") { _, context in
            try WebReply.json(await administration.disconnectDevice(try context.parameters.require("id")))
        }
        routes.post("devices/:id/apps/:topic/token", ["environment"]) { request, context in
            let topic = try Topic.ofPath(context)
            let environment = try PushEnvironment.ofQuery(request)
            let id = try context.parameters.require("id")
            return try WebReply.json(await administration.token(of: topic, in: environment, on: id))
        }
        routes.get("invitations", PageRequest.parameters) { request, _ in
            try WebReply.json(await administration.invitations(try PageRequest(request)))
        }
        routes.post("invitations", InvitationRequest.self) { wanted, _, _ in
            try WebReply.json(await administration.invite(wanted))
        }
        routes.delete("invitations/:id") { _, context in
            try WebReply.json(await administration.withdrawInvitation(try context.parameters.require("id")))
        }
        routes.refuseOtherMethods()
    }

    private func query(_ request: Request) throws -> DeviceQuery {
        let connected = try PageRequest.truth("connected", request)
        return DeviceQuery(try PageRequest(request), text: try PageRequest.text("q", request), connected: connected)
    }
}

extension Topic {
    /// `{topic}` in a path: a bundle identifier.
    static func ofPath(_ context: ConsoleContext) throws -> Topic {
        guard let topic = Topic(try context.parameters.require("topic")) else {
            throw AdminError(.badRequest, "the path must have a topic like com.example.app")
        }
        return topic
    }

    /// `?topic=ID`: a bundle identifier.
    static func ofQuery(_ request: Request) throws -> Topic? {
        guard let text = request.uri.queryParameters["topic"] else { return nil }
        guard let bundle = Topic(text) else {
            throw AdminError(.badRequest, "topic must be a bundle identifier like com.example.app")
        }
        return bundle
    }
}

extension PushEnvironment {
    /// `?environment=NAME`: production or sandbox.
    static func ofQuery(_ request: Request) throws -> PushEnvironment? {
        guard let text = request.uri.queryParameters["environment"] else { return nil }
        guard let environment = PushEnvironment(rawValue: String(text)) else {
            throw AdminError(.badRequest, "environment must be production or sandbox")
        }
        return environment
    }
}
