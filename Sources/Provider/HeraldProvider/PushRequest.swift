public import HeraldModel

/// A notification to send.
public struct PushRequest: Sendable {
    /// The device token of the app, of any length.
    public var token: PushToken
    /// Topic (`apns-topic`): the app's bundle identifier, with the suffix of the push type.
    ///
    /// Nil if the certificate has only one.
    public var topic: Topic?
    /// JSON payload, sent byte for byte: 1 to 4,096 bytes, 5,120 for VoIP.
    public var payload: [UInt8]
    /// Kind of notification (`apns-push-type`).
    public var pushType: PushType
    /// Urgency (`apns-priority`): 10, 5 or 1; nil omits the header field, which means ``Priority/immediate``.
    public var priority: Priority?
    /// How long the service may store it (`apns-expiration`), in whole seconds since 1970.
    public var expiration: Expiration = .unspecified
    /// Collapse identifier (`apns-collapse-id`), 1 to 64 bytes of printable text without a space at either end: the device
    /// shows the newest of those that share it.
    public var collapseID: String?
    /// Identifier (`apns-id`); nil lets the client choose one, the same for every attempt.
    public var id: NotificationID?
    /// Tag (`herald-tag`), 1 to 64 characters, by which a test finds it among the requests that Herald caught.
    ///
    /// APNs ignores it.
    public var tag: String?

    /// Makes a request with the required fields.
    public init(token: PushToken, topic: Topic?, payload: [UInt8], pushType: PushType = .alert) {
        self.token = token
        self.topic = topic
        self.payload = payload
        self.pushType = pushType
    }

    /// Makes a request with a typed payload; a background push gets priority 5.
    /// - Throws: ``ProviderError/Code/badRequest`` under the conditions of ``Payload/encoded(for:)``.
    public init(token: PushToken, topic: Topic?, payload: Payload, pushType: PushType = .alert) throws {
        self.init(token: token, topic: topic, payload: try payload.encoded(for: pushType), pushType: pushType)
        if pushType == .background { priority = .conserving }
    }

    /// Writes the header fields except `authorization`, in a fixed order.
    func write(to head: inout RequestHeader, id: NotificationID) {
        head.add("apns-push-type", pushType.rawValue)
        if let topic { head.add("apns-topic", topic.name) }
        head.add("apns-id", isIndexed: false) { $0 += id.canonicalBytes }
        if let priority { head.add("apns-priority", String(priority.rawValue)) }
        if let expiration = expiration.field { head.add("apns-expiration", expiration) }
        if let collapseID {
            head.add("apns-collapse-id", collapseID, isIndexed: false)
            if CollapseID(collapseID) == nil { head.refuse("apns-collapse-id is \(CollapseID.rule)") }
        }
        if let tag { head.add("herald-tag", tag, isIndexed: false) }
    }
}

extension Expiration {
    /// The value of `apns-expiration`; nil omits the field.
    var field: String? {
        switch self {
        case .unspecified: nil
        case .once: "0"
        case .at(let moment): String(moment.seconds)
        }
    }
}
