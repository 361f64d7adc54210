public import HeraldModel

/// One notification on its way to the service.
public struct PushRequest: Sendable {
    /// The device token that the app gave its provider.
    public var token: DeviceToken
    /// The topic (`apns-topic`); nil with a certificate that has only one.
    public var topic: Topic?
    /// JSON, sent byte for byte.
    public var payload: [UInt8]
    /// The kind of notification (`apns-push-type`).
    public var pushType: PushType
    /// The urgency (`apns-priority`); nil leaves the header out, which means ``Priority/immediate``.
    public var priority: Priority?
    /// How long it may wait (`apns-expiration`).
    public var expiration: Expiration
    /// 1 to 64 bytes; the device shows the newest of those that share it (`apns-collapse-id`).
    public var collapseID: String?
    /// The provider's identifier for it (`apns-id`); nil lets the client make one, so that every attempt has the same.
    public var id: NotificationID?

    /// Makes a request with nothing but what is needed.
    public init(token: DeviceToken, topic: Topic?, payload: [UInt8], pushType: PushType = .alert) {
        self.token = token
        self.topic = topic
        self.payload = payload
        self.pushType = pushType
        priority = nil
        expiration = .unspecified
        collapseID = nil
        id = nil
    }

    /// Makes a request with a typed payload.
    /// - Throws: ``ProviderError/Code/badRequest``, as ``Payload/encoded(for:)`` does.
    public init(token: DeviceToken, topic: Topic?, payload: Payload, pushType: PushType = .alert) throws {
        self.init(token: token, topic: topic, payload: try payload.encoded(for: pushType), pushType: pushType)
        if pushType == .background { priority = .conserving }
    }

    /// Writes the request's header fields but `authorization`, in a fixed order.
    func write(to head: inout HeaderBlock, id: NotificationID) {
        head.add("apns-push-type", pushType.rawValue)
        if let topic { head.add("apns-topic", topic.name) }
        head.add("apns-id", id.canonicalBytes, isIndexed: false)
        if let priority { head.add("apns-priority", String(priority.rawValue)) }
        if let expiration = expiration.field { head.add("apns-expiration", expiration) }
        if let collapseID { head.add("apns-collapse-id", collapseID, isIndexed: false) }
    }
}

extension Expiration {
    /// The value of `apns-expiration`; nil leaves the field out.
    var field: String? {
        switch self {
        case .unspecified: nil
        case .once: "0"
        case .at(let moment): String(moment.seconds)
        }
    }
}
