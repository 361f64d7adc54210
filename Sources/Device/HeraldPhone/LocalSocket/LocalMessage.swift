import HeraldDevice
import HeraldJSON
import HeraldModel

/// Encodes the agent's messages on the local socket: one JSON object per line.
enum LocalMessage {
    static func line(_ members: JSON.Object, adding member: (name: String, json: [UInt8])? = nil) -> [UInt8] {
        JSONLine.bytes(members, adding: member) + [UInt8(ascii: "\n")]
    }

    static func event(_ name: String, _ members: JSON.Object) -> [UInt8] {
        line((["event": .string(name)] as JSON.Object).merging(members))
    }

    static func line(_ message: AppMessage) -> [UInt8] {
        switch message {
        case .permission, .settings, .token, .refused, .languages:
            return message.news.map { event($0.event.rawValue, $0.members) } ?? []
        case .channel(let channel, let reason):
            let refused: JSON = reason.map { .string($0) } ?? .null
            let topic = JSON.string(channel.topic.name)
            return event("channel", ["topic": topic, "channel": .string(channel.id), "refused": refused])
        case .notification(let notification):
            let arrival = notification.arrival
            var members: JSON.Object = [
                "event": .string("notification"), "topic": .string(arrival.topic.name),
                "apns_id": arrival.apnsID.map { .string($0) } ?? .null,
                "why": .string(notification.cause.rawValue), "state": .string(notification.state.rawValue),
            ]
            if let channel = arrival.channel { members["channel"] = .string(channel) }
            if let local = arrival.local { members["local"] = .string(local) }
            if let action = notification.action { members["action"] = .string(action) }
            if let text = notification.text { members["text"] = .string(text) }
            return line(members, payload: Array(arrival.payload))
        }
    }

    /// An object with a payload; a payload that is missing or not JSON is null.
    static func line(_ members: JSON.Object, payload: [UInt8]?) -> [UInt8] {
        line(members, adding: ("payload", payload.flatMap(JSONLine.payload) ?? Array("null".utf8)))
    }

    /// The answer to a request.
    static func answer(_ id: JSON, _ members: JSON.Object = [:]) -> [UInt8] {
        line((["id": id, "ok": .boolean(true)] as JSON.Object).merging(members))
    }

    /// The answer to a request with one member.
    /// - Throws: `EncodingError`.
    static func answer(_ id: JSON, _ name: String, _ value: some Encodable) throws -> [UInt8] {
        answer(id, [name: try JSON(encoding: value)])
    }

    static func failure(_ id: JSON, _ words: String) -> [UInt8] {
        line(["id": id, "error": .string(words)])
    }
}
