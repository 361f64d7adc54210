import Foundation
package import HeraldModel
import HeraldWeb
import Hummingbird

/// Operations on broadcast channels.
///
/// They throw ``AdminError`` for errors that the operator can correct.
package protocol ChannelAdministration: Sendable {
    /// Channels of one app in both environments, or of all apps.
    func channels(of bundle: Topic?, _ page: PageRequest) async throws -> Page<ChannelEntry>

    func channel(_ id: ChannelID) async throws -> ChannelEntry

    /// Makes a channel, as a provider does.
    func makeChannel(of app: App, storage: MessageStoragePolicy) async throws -> ChannelEntry

    /// Deletes a channel with its stored message.
    /// - Returns: The last state of it.
    func deleteChannel(_ id: ChannelID) async throws -> ChannelEntry
}

/// JSON of `POST /v1/channels`.
struct ChannelOrder: Decodable, Hashable, Sendable {
    let app: App
    let storage: MessageStoragePolicy

    private enum CodingKeys: String, CodingKey {
        case topic, environment, policy
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let topic = Topic(try container.decode(String.self, forKey: .topic)) else {
            throw WebRefusal(400, "topic must be a bundle identifier like com.example.app")
        }
        let name = try container.decodeIfPresent(String.self, forKey: .environment)
        guard let environment = PushEnvironment(rawValue: name ?? PushEnvironment.production.rawValue) else {
            throw WebRefusal(400, "environment must be production or sandbox")
        }
        let policy = try? container.decode(UInt8.self, forKey: .policy)
        guard let storage = policy.flatMap({ MessageStoragePolicy(rawValue: $0) }) else {
            throw WebRefusal(400, "policy must be 0 (stores nothing) or 1 (stores the newest message)")
        }
        app = App(topic: topic, environment: environment)
        self.storage = storage
    }
}

/// Routes of broadcast channels.
struct ChannelRoutes: Sendable {
    let administration: any ChannelAdministration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("channels", ["topic"] + PageRequest.parameters) { request, _ in
            let (bundle, page) = (try Topic.ofQuery(request), try PageRequest(request))
            return try WebReply.json(await administration.channels(of: bundle, page))
        }
        routes.post("channels", ChannelOrder.self) { order, _, context in
            context.note.target = Self.words(order.app)
            try order.app.environment.check(context.caller)
            let channel = try await administration.makeChannel(of: order.app, storage: order.storage)
            context.note.target = "\(channel.id) \(Self.words(order.app))"
            return try WebReply.json(channel, status: .created)
        }
        routes.delete("channels/:id") { _, context in
            let id = try Self.id(context)
            let channel = try await administration.channel(id)
            context.note.target = "\(channel.id) \(channel.topic) \(channel.environment.rawValue)"
            try channel.environment.check(context.caller)
            return try WebReply.json(await administration.deleteChannel(id))
        }
        routes.refuseOtherMethods()
    }

    private static func words(_ app: App) -> String { "\(app.topic) \(app.environment.rawValue)" }

    /// `{id}` in a path, in one of the alphabets of base64.
    private static func id(_ context: ConsoleContext) throws -> ChannelID {
        let segment = try context.parameters.require("id")
        let text = segment.removingPercentEncoding ?? segment
        switch ChannelID.read(text.utf8) {
        case .channel(let id): return id
        case .unknown: throw AdminError(.notFound, "there is no channel \(text)")
        case .malformed:
            throw AdminError(.badRequest, "the path must have a channel's identifier in base64: see GET /v1/channels")
        }
    }
}

extension PushEnvironment {
    /// Refuses production to all but admins.
    func check(_ caller: ConsoleCaller?) throws(AdminError) {
        guard self == .sandbox || caller?.role == .admin else {
            throw AdminError(.forbidden, "a sender may do this in the sandbox only: ask an admin for production")
        }
    }
}
