import HeraldModel

/// Encodes the agent's messages on the local socket: one JSON object per line.
enum LocalMessage {
    static func line(encodable object: some Encodable, adding member: (name: String, json: [UInt8])? = nil) -> [UInt8] {
        JSONLine.bytes(object, adding: member) + [UInt8(ascii: "\n")]
    }

    static func line(_ members: [String: PayloadValue]) -> [UInt8] {
        line(encodable: members)
    }

    static func event(_ name: String, _ members: [String: PayloadValue]) -> [UInt8] {
        line(members.merging(["event": .string(name)]) { $1 })
    }

    static func line(_ message: AppMessage) -> [UInt8] {
        switch message {
        case .permission, .settings, .token, .refused, .languages:
            return message.news.map { event($0.event.rawValue, $0.members) } ?? []
        case .notification(let notification):
            var members: [String: PayloadValue] = [
                "event": .string("notification"), "topic": .string(notification.topic.name),
                "apns_id": notification.apnsID.map { .string($0) } ?? .null,
                "why": .string(notification.cause.rawValue), "state": .string(notification.state.rawValue),
            ]
            if let local = notification.local { members["local"] = .string(local) }
            if let action = notification.action { members["action"] = .string(action) }
            if let text = notification.text { members["text"] = .string(text) }
            return line(members, payload: notification.payload)
        }
    }

    /// An object with a payload; a payload that is missing or not JSON is null.
    static func line(_ members: [String: PayloadValue], payload: [UInt8]?) -> [UInt8] {
        line(encodable: members, adding: ("payload", payload.flatMap(JSONLine.payload) ?? Array("null".utf8)))
    }

    /// The answer to a request.
    static func answer(_ id: PayloadValue, _ members: [String: PayloadValue] = [:]) -> [UInt8] {
        line(members.merging(["id": id, "ok": .boolean(true)]) { $1 })
    }

    static func answer(_ id: PayloadValue, _ name: String, _ object: some Encodable) -> [UInt8] {
        line(
            encodable: ["id": id, "ok": .boolean(true)] as [String: PayloadValue],
            adding: (name, JSONLine.bytes(object))
        )
    }

    static func failure(_ id: PayloadValue, _ words: String) -> [UInt8] {
        line(["id": id, "error": .string(words)])
    }
}
