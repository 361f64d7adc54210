import HeraldConsole
import HeraldModel
import HeraldProvider

/// The fields of a header that the console sends, read from their texts.
struct SendHeaders: Sendable {
    private static let known = [
        "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id", "herald-tag",
    ]

    private let pushType: PushType?
    private let priority: Priority?
    private let expiration: Expiration?
    private let collapseID: String?
    private let id: NotificationID?
    private let tag: String?

    /// Reads the fields of an order.
    /// - Throws: ``HeraldConsole/AdminError``.
    init(_ headers: [String: String]) throws(AdminError) {
        var fields: [String: String] = [:]
        for (name, value) in headers where fields.updateValue(value, forKey: name.lowercased()) != nil {
            throw AdminError(.badRequest, "the field \(name.lowercased()) appears more than once")
        }
        if let unknown = fields.keys.sorted().first(where: { !Self.known.contains($0) }) {
            throw AdminError(
                .badRequest,
                "the console sends no field \(unknown.debugDescription): the fields are \(Self.known.joined(separator: ", ")); "
                    + "the topic stands in to"
            )
        }
        func read<Value>(_ name: String, _ rule: String, _ read: (String) -> Value?) throws(AdminError) -> Value? {
            guard let text = fields[name] else { return nil }
            guard let value = read(text) else { throw AdminError(.badRequest, "\(name) is \(rule)") }
            return value
        }
        let types = PushType.allCases.map(\.rawValue).joined(separator: ", ")
        pushType = try read("apns-push-type", "one of \(types)") { PushType(rawValue: $0) }
        priority = try read("apns-priority", "10, 5 or 1") { UInt8($0).flatMap { Priority(rawValue: $0) } }
        expiration = try read("apns-expiration", Expiration.rule) { Expiration($0) }
        collapseID = try read("apns-collapse-id", CollapseID.rule) { CollapseID($0)?.text }
        id = try read("apns-id", "a UUID") { NotificationID($0) }
        let rule = "1 to \(CatchTag.maximumLength) characters, without control characters or spaces at its ends"
        tag = try read("herald-tag", rule) { text in
            let bytes = text.utf8
            let isField = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && bytes.first != 0x20 && bytes.last != 0x20
            return isField && CatchTag.isWhole(text) ? text : nil
        }
    }

    /// A notification for a token.
    func request(_ token: PushToken, _ topic: Topic, _ payload: [UInt8]) -> PushRequest {
        let implied = PushType.allCases.first { !$0.topicSuffix.isEmpty && topic.name.hasSuffix($0.topicSuffix) }
        var request = PushRequest(token: token, topic: topic, payload: payload, pushType: pushType ?? implied ?? .alert)
        request.priority = priority ?? (request.pushType == .background ? .conserving : nil)
        request.expiration = expiration ?? .unspecified
        (request.collapseID, request.id, request.tag) = (collapseID, id, tag)
        return request
    }

    /// A broadcast for a channel.
    func broadcast(_ channel: String, _ app: Topic, _ payload: [UInt8]) -> BroadcastRequest {
        var request = BroadcastRequest(app: app, channel: channel, payload: payload)
        request.priority = priority ?? .immediate
        request.expiration = expiration ?? .once
        (request.id, request.tag) = (id, tag)
        return request
    }
}
