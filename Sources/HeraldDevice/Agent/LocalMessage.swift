import Foundation
import HeraldModel

/// What the agent says on the local socket: objects of JSON, one a line.
enum LocalMessage {
    static func line(_ members: [String: PayloadValue], payload: [UInt8]? = nil) -> [UInt8] {
        line(encodable: members, adding: payload.map { ("payload", PayloadLine.bytes($0)) })
    }

    /// An object, with one more member that is JSON already.
    static func line(encodable object: some Encodable, adding member: (name: String, json: [UInt8])? = nil) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard var bytes = (try? encoder.encode(object)).map(Array.init) else { return [] }
        if let member {
            bytes.removeLast()
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += Array("\"\(member.name)\":".utf8) + member.json + [UInt8(ascii: "}")]
        }
        return bytes + [UInt8(ascii: "\n")]
    }

    static func event(_ name: String, _ members: [String: PayloadValue]) -> [UInt8] {
        line(members.merging(["event": .string(name)]) { $1 })
    }

    static func news(_ news: AppNews) -> [UInt8] {
        func kinds(_ kinds: [NotificationKind]) -> PayloadValue { .array(kinds.map { .string($0.rawValue) }) }
        switch news {
        case .permission(let topic, let granted):
            return event("permission", ["topic": .string(topic.name), "granted": kinds(granted)])
        case .settings(let topic, let granted):
            return event("settings", ["topic": .string(topic.name), "granted": kinds(granted)])
        case .token(let topic, let token):
            return event("token", ["topic": .string(topic.name), "token": .string(token)])
        case .refused(let topic, let reason):
            return event("refused", ["topic": .string(topic.name), "reason": .string(reason)])
        case .languages(let languages): return event("languages", ["languages": .array(languages.map { .string($0) })])
        case .notification(let incoming):
            var members: [String: PayloadValue] = [
                "event": .string("notification"), "topic": .string(incoming.topic.name),
                "apns_id": incoming.apnsID.map { .string($0) } ?? .null, "why": .string(incoming.cause.rawValue),
                "state": .string(incoming.state.rawValue),
            ]
            if let action = incoming.action { members["action"] = .string(action) }
            if let text = incoming.text { members["text"] = .string(text) }
            return line(members, payload: incoming.payload)
        }
    }

    /// The answer to a request.
    static func answer(_ id: PayloadValue, _ members: [String: PayloadValue] = [:]) -> [UInt8] {
        line(members.merging(["id": id, "ok": .boolean(true)]) { $1 })
    }

    static func answer(_ id: PayloadValue, _ name: String, _ object: some Encodable) -> [UInt8] {
        let encoded = line(encodable: object).dropLast()
        return line(
            encodable: ["id": id, "ok": .boolean(true)] as [String: PayloadValue],
            adding: (name, Array(encoded))
        )
    }

    static func failure(_ id: PayloadValue, _ words: String) -> [UInt8] {
        line(["id": id, "error": .string(words)])
    }
}
