package import HeraldModel
import HeraldWeb

/// JSON of `POST /v1/channels`.
package struct ChannelOrder: Decodable, Hashable, Sendable {
    package let app: App
    package let storage: MessageStoragePolicy

    private enum CodingKeys: String, CodingKey {
        case topic, environment, policy
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let topic = Topic(try container.decode(String.self, forKey: .topic)) else {
            throw WebRefusal(400, "topic must be a bundle identifier like com.example.app")
        }
        let given = try? container.decodeIfPresent(PushEnvironment.self, forKey: .environment) ?? .production
        guard let environment = given else {
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

extension PushEnvironment {
    /// Refuses production to all but admins.
    func check(_ caller: ConsoleCaller?) throws(AdminError) {
        guard self == .sandbox || caller?.role == .admin else {
            throw AdminError(.forbidden, "a sender may do this in the sandbox only: ask an admin for production")
        }
    }
}

extension AdminWork {
    /// Registers the making and deleting of channels: a sender may do it in the sandbox only, and the audit names the channel.
    package mutating func registerChannels(
        find: @escaping @Sendable (ChannelID) async throws -> ChannelEntry,
        make: @escaping @Sendable (App, MessageStoragePolicy) async throws -> ChannelEntry,
        delete: @escaping @Sendable (ChannelID) async throws -> ChannelEntry
    ) {
        on(AdminAPI.makeChannel) { call in
            let app = call.body.app
            call.note.target = "\(app.topic) \(app.environment.rawValue)"
            try app.environment.check(call.caller)
            let channel = try await make(app, call.body.storage)
            call.note.target = "\(channel.id) \(app.topic) \(app.environment.rawValue)"
            return channel
        }
        on(AdminAPI.deleteChannel) { call in
            let id = try call.path(AdminAPI.channel)
            let channel = try await find(id)
            call.note.target = "\(channel.id) \(channel.topic) \(channel.environment.rawValue)"
            try channel.environment.check(call.caller)
            return try await delete(id)
        }
    }
}
